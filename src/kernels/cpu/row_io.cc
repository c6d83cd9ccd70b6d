#include "kernels/cpu/row_io.h"

#include <cstring>

namespace taeda::cpu {
namespace {

template <class To, class From>
void convert(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n) {
  To* d = static_cast<To*>(dst);
  const From* s = static_cast<const From*>(src);
  if (dst_stride == 1 && src_stride == 1) {
    if constexpr (std::is_same_v<To, From>) {
      std::memcpy(static_cast<void*>(d), s, static_cast<size_t>(n) * sizeof(To));
    } else {
      for (int64_t i = 0; i < n; i++) d[i] = convert_value<To>(s[i]);
    }
  } else {
    for (int64_t i = 0; i < n; i++) d[i * dst_stride] = convert_value<To>(s[i * src_stride]);
  }
}

}  // namespace

void convert_row(void* dst, DType dst_type, int64_t dst_stride, const void* src, DType src_type, int64_t src_stride,
                 int64_t n) {
  with_dtype(dst_type, [&](auto to) {
    with_dtype(src_type, [&](auto from) { convert<decltype(to), decltype(from)>(dst, dst_stride, src, src_stride, n); });
  });
}

}  // namespace taeda::cpu
