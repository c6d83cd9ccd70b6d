// Rows of a contiguous tensor as T: its own memory where it holds T, else a buffer that is
// converted in and out.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/interrupt.h"
#include "kernels/cpu/rows/row_io.h"
#include "kernels/cpu/simd/prefetch.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/simd/stream.h"

namespace taeda::cpu {

template <class T>
class RowBuffer {
 public:
  // Rows of at most `length` elements. `streamed` rows are written past the cache.
  RowBuffer(const View& v, int64_t length, bool streamed = false)
      : v_(v),
        streamed_(streamed && v.dtype == kDTypeOf<T>),
        direct_(v.dtype == kDTypeOf<T> && !streamed),
        buffer_(direct_ ? 0 : length) {
    fence_.pending = streamed_;
  }
  // n elements from `offset` on.
  T* read(int64_t offset, int64_t n) {
    if (direct_) return v_.as<T>() + offset;
    convert_row(buffer_.data(), kDTypeOf<T>, 1, at(v_, offset), v_.dtype, 1, n);
    return buffer_.data();
  }
  // Elements that will be read soon.
  [[gnu::always_inline]] void prefetch(int64_t offset, int64_t n) const {
    prefetch_block(at(v_, offset), n * item_size(v_.dtype));
  }
  // Where to write them; `close` with the same arguments stores them.
  T* open(int64_t offset) { return direct_ ? v_.as<T>() + offset : buffer_.data(); }
  void close(int64_t offset, int64_t n) {
    if (direct_) return;
    if (streamed_)
      stream(at(v_, offset), buffer_.data(), n * static_cast<int64_t>(sizeof(T)));
    else
      convert_row(at(v_, offset), v_.dtype, 1, buffer_.data(), kDTypeOf<T>, 1, n);
  }
  // Writes n elements from `offset` on, of which fill(to, i, m) gives elements i ... i + m.
  // Streamed ones leave in chunks, so that the next is computed, and what it calls for prefetched,
  // meanwhile.
  template <class F>
  void write(int64_t offset, int64_t n, const F& fill) {
    constexpr int64_t kChunk = kStreamBytes / static_cast<int64_t>(sizeof(T));
    const int64_t chunk = streamed_ ? kChunk : std::max<int64_t>(1, n);
    for (int64_t i = 0; i < n; i += chunk) {
      const int64_t m = std::min(chunk, n - i);
      fill(open(offset + i), i, m);
      close(offset + i, m);
    }
  }

 private:
  const View& v_;
  const bool streamed_;
  const bool direct_;
  const Scratch<T> buffer_;
  StreamFence fence_;
};

// Whether rows of n elements of T are to be streamed by a kernel that touches `bytes`: they fit the
// second-level cache until then and are not all beginnings and ends of lines.
template <class T>
bool stream_rows(int64_t bytes, int64_t n) {
  const int64_t row = n * static_cast<int64_t>(sizeof(T));
  // Rows are read more than once: they need the cache sooner than other loops' operands do.
  return worth_streaming(bytes / 5 * 8) && row >= kStreamedChunk && row <= 1 << 17;
}

// n zeros.
template <class T>
std::unique_ptr<T[]> zeros(int64_t n) {
  std::unique_ptr<T[]> out(new T[static_cast<size_t>(n)]);
  in_slices(n, [&](int64_t begin, int64_t end) {
    std::memset(out.get() + begin, 0, static_cast<size_t>(end - begin) * sizeof(T));
  });
  return out;
}

// A whole small tensor (a weight, a bias, statistics) as T; `fill` where it is absent.
template <class T>
class SmallTensor {
 public:
  SmallTensor(const View& v, int64_t n, T fill) {
    if (v.present && v.dtype == kDTypeOf<T> && v.ndim() <= 1 && (n <= 1 || v.strides[0] == 1)) {
      data_ = v.as<T>();
      return;
    }
    buffer_.reset(new T[static_cast<size_t>(n)]);
    data_ = buffer_.get();
    if (v.present)
      convert_row(buffer_.get(), kDTypeOf<T>, 1, v.data, v.dtype, v.ndim() == 1 ? v.strides[0] : 1,
                  n);
    else
      in_slices(n, [&](int64_t begin, int64_t end) {
        std::fill(buffer_.get() + begin, buffer_.get() + end, fill);
      });
  }
  const T& operator[](int64_t i) const { return data_[i]; }
  const T* data() const { return data_; }

 private:
  const T* data_;
  std::unique_ptr<T[]> buffer_;
};

}  // namespace taeda::cpu
