#include "kernels/cpu/index/gather.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/pointwise/transpose.h"

// These loops are nothing but loads and stores: vector code for broadcasting and for dense chunks
// pays.
#pragma GCC optimize("O3")

namespace taeda::cpu {

namespace {

// 16 bytes as a compiler's vector: every machine has those.
template <class T>
struct Vector {
  typedef T Type __attribute__((vector_size(16)));
};
template <class T>
typename Vector<T>::Type load16(const void* p) {
  typename Vector<T>::Type v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
void store16(void* p, V v) {
  std::memcpy(p, &v, sizeof v);
}

// Elements 0, 2, 4, ... of the source, four at a time; returns how many are done. Nothing beyond
// the last one is read.
int64_t every_second(uint32_t* y, const char* src, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, src += 32) {
    const auto a = load16<uint32_t>(src), b = load16<uint32_t>(src + 12);
    store16(y + i, __builtin_shufflevector(a, b, 0, 2, 5, 7));
  }
  return i;
}
// Elements 0, -1, -2, ...; the source is read forwards, as prefetching wants it.
int64_t backwards(uint32_t* y, const char* src, int64_t n) {
  const int64_t whole = n / 4 * 4;
  for (int64_t i = whole - 4; i >= 0; i -= 4) {
    const auto a = load16<uint32_t>(src - (i + 3) * 4);
    store16(y + i, __builtin_shufflevector(a, a, 3, 2, 1, 0));
  }
  return whole;
}

template <class T>
bool is_zero(const T& value) {
  if constexpr (std::is_same_v<T, ItemPair>)
    return value.a == 0 && value.b == 0;
  else
    return value == 0;
}

template <class T>
void gather(T* y, const char* src, int64_t stride, int64_t n) {
  if (stride == 0) {
    // The C library's memcpy uses wider registers than this file may.
    constexpr int64_t kPattern = 2048 / sizeof(T);
    T value;
    std::memcpy(&value, src, sizeof(T));
    if (is_zero(value)) {
      std::memset(y, 0, static_cast<size_t>(n) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < std::min(n, kPattern); i++) y[i] = value;
    for (int64_t i = kPattern; i < n; i += kPattern) {
      std::memcpy(y + i, y, static_cast<size_t>(std::min(kPattern, n - i)) * sizeof(T));
    }
    return;
  }
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    if (stride == 2 * static_cast<int64_t>(sizeof(T))) i = every_second(y, src, n);
    if (stride == -static_cast<int64_t>(sizeof(T))) i = backwards(y, src, n);
  }
  for (; i < n; i++) std::memcpy(y + i, src + i * stride, sizeof(T));
}

template <class T>
void scatter(char* dst, int64_t stride, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) std::memcpy(dst + i * stride, x + i, sizeof(T));
}

// 4 elements of each of 4 rows, from 4 places of the source.
void transpose(uint32_t* y, int64_t n, const char* src, int64_t stride) {
  const auto a = load16<uint32_t>(src), b = load16<uint32_t>(src + stride),
             c = load16<uint32_t>(src + 2 * stride), d = load16<uint32_t>(src + 3 * stride);
  const auto ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const auto cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const auto ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const auto cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store16(y, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  store16(y + n, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  store16(y + 2 * n, __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5));
  store16(y + 3 * n, __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7));
}
// 2 elements of each of 2 rows.
void transpose(uint64_t* y, int64_t n, const char* src, int64_t stride) {
  const auto a = load16<uint64_t>(src), b = load16<uint64_t>(src + stride);
  store16(y, __builtin_shufflevector(a, b, 0, 2));
  store16(y + n, __builtin_shufflevector(a, b, 1, 3));
}

// A full tile is as many rows as a cache line has elements: the inner loop unrolls.
template <class T>
void tile(T* y, const char* src, int64_t stride, int64_t n, int64_t rows) {
  constexpr int64_t kRows = 64 / sizeof(T);
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    if (rows == kRows) i = transpose_lines(y, src, stride, n);
  }
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    constexpr int64_t kSide = 16 / sizeof(T);
    for (; rows == kRows && i + kSide <= n; i += kSide) {
      for (int64_t r = 0; r < kRows; r += kSide)
        transpose(y + r * n + i, n, src + i * stride + r * static_cast<int64_t>(sizeof(T)), stride);
    }
  }
  for (; i < n; i++) {
    const char* const from = src + i * stride;
    if (rows == kRows) {
      T line[kRows];
      std::memcpy(line, from, sizeof line);
      for (int64_t r = 0; r < kRows; r++) y[r * n + i] = line[r];
    } else {
      for (int64_t r = 0; r < rows; r++)
        std::memcpy(y + r * n + i, from + r * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
  }
}

// The C library copies runs of some thousand bytes by `rep movsb`, which takes several times as
// long where source and destination lie differently in their cache lines.
void copy_bytes(char* dst, const char* src, int64_t n) {
  constexpr int64_t kFrom = 1 << 10, kTo = 1 << 19, kLine = 64;
  const auto apart = reinterpret_cast<uintptr_t>(dst) - reinterpret_cast<uintptr_t>(src);
  int64_t i = 0;
  if (n >= kFrom && n <= kTo && apart % kLine != 0) {
    for (; i + kLine <= n; i += kLine) {
      const auto a = load16<char>(src + i), b = load16<char>(src + i + 16),
                 c = load16<char>(src + i + 32), d = load16<char>(src + i + 48);
      store16(dst + i, a);
      store16(dst + i + 16, b);
      store16(dst + i + 32, c);
      store16(dst + i + 48, d);
    }
  }
  std::memcpy(dst + i, src + i, static_cast<size_t>(n - i));
}

}  // namespace

void gather_items(void* dst, const char* src, int64_t itemsize, int64_t stride, int64_t n) {
  if (stride == itemsize) {
    copy_bytes(static_cast<char*>(dst), src, n * itemsize);
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

// Sums: vectors of the baseline have no such products.
void count_up(int64_t* out, int64_t n, int64_t a, int64_t d) {
  uint64_t value = static_cast<uint64_t>(a);
  for (int64_t i = 0; i < n; i++, value += static_cast<uint64_t>(d))
    out[i] = static_cast<int64_t>(value);
}

void gather_tile(void* dst, const char* src, int64_t itemsize, int64_t stride, int64_t n,
                 int64_t rows) {
  with_item_type(itemsize,
                 [&](auto t) { tile(static_cast<decltype(t)*>(dst), src, stride, n, rows); });
}

}  // namespace taeda::cpu
