#include "autograd/math.h"

#include <algorithm>

#include "core/device_memory.h"
#include "core/host_copy.h"
#include "core/layout.h"
#include "op/_neg_view.h"
#include "op/add.h"
#include "op/alias.h"
#include "op/as_strided.h"
#include "op/as_strided_backward.h"
#include "op/clone.h"
#include "op/conj.h"
#include "op/copy_.h"
#include "op/detach.h"
#include "op/empty_strided.h"
#include "op/ones.h"
#include "op/ones_like.h"
#include "op/real.h"
#include "op/reshape.h"
#include "op/sum_to_size.h"
#include "op/t.h"
#include "op/to_device.h"
#include "op/to_dtype.h"
#include "op/view_as_complex.h"
#include "op/view_as_real.h"
#include "op/zeros.h"
#include "ops/batching/level.h"
#include "ops/sparse/parts.h"

namespace taeda::autograd::math {

Tensor add(const Tensor& a, const Tensor& b) {
  const bool swapped = a.is_sparse() && !b.is_sparse();  // the dense one comes first
  return op::add(swapped ? b : a, swapped ? a : b, Scalar(int64_t{1}));
}
void accumulate(const Tensor& a, const Tensor& b) { op::add_inplace(a, b, Scalar(int64_t{1})); }
Tensor zeros(IntSpan sizes, DType dtype, Device device) {
  TensorOptions options(dtype);
  options.device = device;
  return op::zeros(sizes, options);
}
Tensor ones_like(const Tensor& t) {
  if ((t.impl()->keys | thread_modes.included).has(Key::kPython)) [[unlikely]]
    return op::ones_like(t, {}, std::nullopt);
  TensorOptions options(t.dtype());
  options.device = t.device();
  return op::ones(t.sizes(), options);
}
Tensor clone(const Tensor& t) { return op::clone(t, std::nullopt); }
Tensor clone_with_strides(const Tensor& t, IntSpan strides) {
  TensorOptions options(t.dtype());
  options.device = t.device();
  Tensor out = op::empty_strided(t.sizes(), strides, options);
  op::copy_(out, t, false);
  return out;
}
Tensor reshape(const Tensor& t, IntSpan sizes) { return op::reshape(t, sizes); }
Tensor transpose(const Tensor& matrix) { return op::t(matrix); }
Tensor sum_to_size(const Tensor& t, IntSpan sizes) { return op::sum_to_size(t, sizes); }
Tensor cast(const Tensor& t, DType dtype) {
  const Tensor real = t.is_complex() && !is_complex(dtype) ? op::real(t) : t;
  return op::to_dtype(real, dtype, false, std::nullopt);
}
Tensor to_device(const Tensor& t, Device device) { return op::to_device(t, device, false); }
Tensor as_strided(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset) {
  return op::as_strided(t, sizes, strides, offset);
}
Tensor as_strided_backward(const Tensor& gy, IntSpan base_sizes, IntSpan base_strides,
                           int64_t base_offset, IntSpan sizes, IntSpan strides, int64_t offset) {
  return op::as_strided_backward(gy, base_sizes, base_strides, base_offset, sizes, strides, offset);
}
Tensor view_as_real(const Tensor& t) { return op::view_as_real(t); }
Tensor pairs_as_complex(const Tensor& t) {
  int64_t length = t.numel() == 0 ? 0 : 1;
  for (int64_t d = 0; length != 0 && d < t.dim(); d++) length += (t.size(d) - 1) * t.stride(d);
  return op::view_as_complex(op::as_strided(t, {length / 2, 2}, {2, 1}, t.storage_offset()));
}
Tensor with_elements_of(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  return is_complex(t.dtype()) ? view_as_real(t) : pairs_as_complex(t);
}
void copy_(const Tensor& to, const Tensor& from) { op::copy_(to, from, false); }
Tensor conjugate(const Tensor& t) { return op::conj(t); }
Tensor as_read(const Tensor& part, KeySet view, KeySet base) {
  const auto differ = [&](Key bit) { return view.has(bit) != base.has(bit); };
  const Tensor conjugate = differ(Key::kConjugate) ? op::conj(part) : part;
  return differ(Key::kNegative) ? op::_neg_view(conjugate) : conjugate;
}
Tensor view(const Tensor& t) { return op::alias(t); }

namespace {

// Elements count as bad when their exponent is all ones and their fraction is not zero.
template <class Bits>
bool any_nan(const void* data, int64_t count, Bits infinity) {
  const Bits* values = static_cast<const Bits*>(data);
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  constexpr int64_t kBlock = 1024;
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t end = std::min(count, start + kBlock);
    Bits found = 0;
    for (int64_t i = start; i < end; i++)
      found |= static_cast<Bits>((values[i] & static_cast<Bits>(~sign)) > infinity);
    if (found) return true;
  }
  return false;
}

}  // namespace

bool has_nan(const Tensor& t) {
  if (!is_inexact(t.dtype()) || !has_memory(t.device()) || t.numel() == 0) return false;
  if (is_storage_type(t.dtype())) return has_nan(cast(t, dtype_info(t.dtype()).compute));
  Tensor dense = host_copy(t);
  int64_t count = t.numel();
  if (!is_dense_layout(t.sizes(), t.strides())) dense = math::clone(dense);
  switch (t.dtype()) {
    case DType::kFloat16:
      return any_nan<uint16_t>(dense.data_ptr(), count, 0x7c00);
    case DType::kBFloat16:
      return any_nan<uint16_t>(dense.data_ptr(), count, 0x7f80);
    case DType::kComplex64:
      return any_nan<uint32_t>(dense.data_ptr(), 2 * count, 0x7f800000u);
    case DType::kFloat32:
      return any_nan<uint32_t>(dense.data_ptr(), count, 0x7f800000u);
    case DType::kComplex128:
      count *= 2;
      [[fallthrough]];
    default:
      return any_nan<uint64_t>(dense.data_ptr(), count, 0x7ff0000000000000ull);
  }
}

Tensor alias(const Tensor& t) {
  if (t.impl()->keys.has(Key::kPython)) [[unlikely]] {  // its class makes the alias
    const ExcludeKeys below(kDifferentiationKeys);
    return op::detach(t);
  }
  if (t.impl()->keys.has(Key::kBatched)) [[unlikely]] {
    const Tensor other = batching::alias(t);
    other.impl()->inference = false;  // also where inference_mode is on outside of a transform
    other.impl()->keys = other.impl()->keys - Key::kAutograd;
    return other;
  }
  if (t.impl()->keys.has(Key::kSparse)) [[unlikely]]
    return sparse::alias(t);
  const TensorImpl& from = *t.impl();
  Ref<TensorImpl> impl = make_ref<TensorImpl>(from.storage, from.dtype, from.device);
  impl->sizes = from.sizes;
  impl->strides = from.strides;
  impl->offset = from.offset;
  impl->numel = from.numel;
  impl->contiguous = from.contiguous;
  impl->wrapped_number = from.wrapped_number;
  impl->own_version = from.own_version;
  impl->inference = false;
  impl->keys = from.keys & (kDeviceKeys | kMathBits | Key::kFunctionalize);
  return Tensor(std::move(impl));
}

}  // namespace taeda::autograd::math
