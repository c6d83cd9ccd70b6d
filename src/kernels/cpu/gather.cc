#include "kernels/cpu/gather.h"

#include <algorithm>
#include <cstring>

// These loops are nothing but loads and stores: vector code for broadcasting and for dense pieces
// pays.
#pragma GCC optimize("O3")

namespace taeda::cpu {

namespace {

template <class T>
void gather(T* y, const char* src, int64_t stride, int64_t n) {
  if (stride == 0) {
    // The C library's memcpy uses wider registers than this file may.
    constexpr int64_t kPattern = 2048 / sizeof(T);
    T value;
    std::memcpy(&value, src, sizeof(T));
    for (int64_t i = 0; i < std::min(n, kPattern); i++) y[i] = value;
    for (int64_t i = kPattern; i < n; i += kPattern) {
      std::memcpy(y + i, y, static_cast<size_t>(std::min(kPattern, n - i)) * sizeof(T));
    }
    return;
  }
  for (int64_t i = 0; i < n; i++) std::memcpy(y + i, src + i * stride, sizeof(T));
}

template <class T>
void scatter(char* dst, int64_t stride, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) std::memcpy(dst + i * stride, x + i, sizeof(T));
}

// A full tile is as many rows as a cache line has elements: the inner loop unrolls.
template <class T>
void tile(T* y, const char* src, int64_t stride, int64_t n, int64_t rows) {
  constexpr int64_t kRows = 64 / sizeof(T);
  for (int64_t i = 0; i < n; i++) {
    T line[kRows];
    if (rows == kRows) {
      std::memcpy(line, src + i * stride, sizeof line);
      for (int64_t r = 0; r < kRows; r++) y[r * n + i] = line[r];
    } else {
      std::memcpy(line, src + i * stride, static_cast<size_t>(rows) * sizeof(T));
      for (int64_t r = 0; r < rows; r++) y[r * n + i] = line[r];
    }
  }
}

}  // namespace

void gather_items(void* dst, const char* src, int64_t itemsize, int64_t stride, int64_t n) {
  if (stride == itemsize) {
    std::memcpy(dst, src, static_cast<size_t>(n * itemsize));
    return;
  }
  with_item_type(itemsize, [&](auto t) { gather(static_cast<decltype(t)*>(dst), src, stride, n); });
}

void scatter_items(char* dst, const void* src, int64_t itemsize, int64_t stride, int64_t n) {
  if (stride == itemsize) {
    std::memcpy(dst, src, static_cast<size_t>(n * itemsize));
    return;
  }
  with_item_type(itemsize,
                 [&](auto t) { scatter(dst, stride, static_cast<const decltype(t)*>(src), n); });
}

void gather_tile(void* dst, const char* src, int64_t itemsize, int64_t stride, int64_t n,
                 int64_t rows) {
  with_item_type(itemsize,
                 [&](auto t) { tile(static_cast<decltype(t)*>(dst), src, stride, n, rows); });
}

}  // namespace taeda::cpu
