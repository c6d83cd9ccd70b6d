#include "ops/allocate.h"

#include "core/device_memory.h"
#include "core/layout.h"
#include "op/copy_.h"
#include "op/resize_.h"
#include "taeda/warning.h"

namespace taeda {

namespace {

Tensor make_tensor(int64_t nbytes, DType dtype, Device device) {
  // Tensors have the index of their device: "cuda" is the current one's here, and never later. The
  // CPU has none: "cpu:0" is "cpu".
  device = device.is_cpu() ? Device() : resolved(device);
  return Tensor(make_ref<TensorImpl>(Storage::allocate(nbytes, device), dtype, device));
}

void check_cast(std::string_view op, const Tensor& result, const Tensor& out) {
  TD_CHECK(can_cast(result.dtype(), out.dtype()),
           "{}: result type {} can't be cast to the desired output type {}", op,
           scalar_type_name(result.dtype()), scalar_type_name(out.dtype()));
}

}  // namespace

Tensor empty_tensor(IntSpan sizes, DType dtype, Device device) {
  Tensor t = make_tensor(checked_nbytes(sizes, dtype), dtype, device);
  t.impl()->set_contiguous_layout(sizes);
  return t;
}

Tensor empty_strided_tensor(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  checked_nbytes(sizes, dtype);
  Tensor t = make_tensor(storage_bytes_needed(sizes, strides, 0, dtype), dtype, device);
  t.impl()->set_layout(sizes, strides, 0);
  return t;
}

Tensor empty_like_tensor(const Tensor& like, DType dtype) {
  if (like.impl()->contiguous) return empty_tensor(like.sizes(), dtype, like.device());
  return empty_strided_tensor(like.sizes(), preserved_strides(like.sizes(), like.strides()), dtype,
                              like.device());
}

Tensor alias_tensor(const Tensor& base, IntSpan sizes, IntSpan strides, int64_t offset) {
  const TensorImpl& source = *base.impl();
  auto impl = make_ref<TensorImpl>(source.storage, source.dtype, source.device);
  impl->own_version = source.own_version;
  impl->set_layout(sizes, strides, offset);
  return Tensor(std::move(impl));
}

void resize_out(std::string_view op, const Tensor& out, IntSpan sizes, bool quietly) {
  TD_CHECK(out.storage()->resizable(),
           "{}: out= has shape {} and memory that cannot be resized to {}", op, out.sizes(), sizes);
  if (out.numel() != 0 && !quietly) {
    warn(format(
        "{}: out= has shape {} and elements, and was resized to {}. This is deprecated: give "
        "out= the result's shape, or resize it to none (t.resize_(0)) before.",
        op, out.sizes(), sizes));
  }
  op::resize_(out, sizes, std::nullopt);
}

Tensor write_inplace(std::string_view op, const Tensor& self, const Tensor& result) {
  check_cast(op, result, self);
  return op::copy_(self, result, false);
}

void write_out(std::string_view op, const Tensor& out, const Tensor& result, bool quietly) {
  TD_CHECK(out.device() == result.device(), "{}: expected out= on {}, got {}", op, result.device(),
           out.device());
  check_cast(op, result, out);
  if (out.sizes() != result.sizes()) resize_out(op, out, result.sizes(), quietly);
  op::copy_(out, result, false);
}

}  // namespace taeda
