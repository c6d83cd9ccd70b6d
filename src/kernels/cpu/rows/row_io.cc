#include "kernels/cpu/rows/row_io.h"

#include <algorithm>

#include "base/interrupt.h"
#include "kernels/cpu/index/gather.h"
#include "kernels/cpu/pointwise/loop.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kBlock = 512;

// The same type, any strides.
void move_row(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n,
              DType t) {
  const int64_t item = item_size(t);
  if (dst_stride == 1)
    return gather_items(dst, static_cast<const char*>(src), item, src_stride * item, n);
  if (src_stride == 1)
    return scatter_items(static_cast<char*>(dst), src, item, dst_stride * item, n);
  with_width(t, [&](auto zero) {
    auto* const d = static_cast<decltype(zero)*>(dst);
    const auto* const s = static_cast<const decltype(zero)*>(src);
    for (int64_t i = 0; i < n; i++) d[i * dst_stride] = s[i * src_stride];
  });
}

void convert_slice(void* dst, DType dst_type, int64_t dst_stride, const void* src, DType src_type,
                   int64_t src_stride, int64_t n) {
  if (dst_type == src_type) return move_row(dst, dst_stride, src, src_stride, n, dst_type);
  const Conversion convert(dst_type, src_type);
  if (dst_stride == 1 && src_stride == 1) return convert(dst, src, n);
  // Dense blocks in between: gathered, converted, spread.
  alignas(64) char from[kBlock * 16], to[kBlock * 16];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    const char* s = static_cast<const char*>(src) + i * src_stride * item_size(src_type);
    char* d = static_cast<char*>(dst) + i * dst_stride * item_size(dst_type);
    if (src_stride != 1) {
      move_row(from, 1, s, src_stride, m, src_type);
      s = from;
    }
    if (dst_stride == 1) {
      convert(d, s, m);
    } else {
      convert(to, s, m);
      move_row(d, dst_stride, to, 1, m, dst_type);
    }
  }
}

}  // namespace

void convert_row(void* dst, DType dst_type, int64_t dst_stride, const void* src, DType src_type,
                 int64_t src_stride, int64_t n) {
  constexpr int64_t kLong = 1 << 18;
  if (n <= 0) return;
  if (n <= kLong)  // many are a single element
    return convert_slice(dst, dst_type, dst_stride, src, src_type, src_stride, n);
  in_slices(n, [&](int64_t begin, int64_t end) {
    convert_slice(static_cast<char*>(dst) + begin * dst_stride * item_size(dst_type), dst_type,
                  dst_stride,
                  static_cast<const char*>(src) + begin * src_stride * item_size(src_type),
                  src_type, src_stride, end - begin);
  });
}

void convert_summand(void* dst, DType compute, int64_t dst_stride, const void* src, DType src_type,
                     int64_t src_stride, int64_t n, DType result) {
  if (compute != DType::kInt64 || result == compute || !is_inexact(src_type))
    return convert_row(dst, compute, dst_stride, src, src_type, src_stride, n);
  alignas(64) char whole[kBlock * 8];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    convert_row(whole, result, 1,
                static_cast<const char*>(src) + i * src_stride * item_size(src_type), src_type,
                src_stride, m);
    convert_row(static_cast<char*>(dst) + i * dst_stride * item_size(compute), compute, dst_stride,
                whole, result, 1, m);
  }
}

}  // namespace taeda::cpu
