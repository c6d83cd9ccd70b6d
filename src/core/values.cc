#include "taeda/values.h"

#include "core/element.h"
#include "core/layout.h"

namespace taeda {
namespace {

template <class From>
Tensor from_values(const From* values, size_t count, IntSpan sizes, DType dtype) {
  const auto n = static_cast<int64_t>(count);
  TD_CHECK(checked_numel(sizes) == n, "tensor: shape {} is invalid for {} values", sizes, n);
  Ref<TensorImpl> impl(new TensorImpl(Storage::allocate(n * item_size(dtype), DeviceType::kCPU),
                                      dtype, DeviceType::kCPU));
  impl->set_contiguous_layout(sizes);
  auto* data = static_cast<char*>(impl->data());
  for (int64_t i = 0; i < n; i++)
    write_element(dtype, data + i * item_size(dtype), Scalar(values[i]));
  return Tensor(std::move(impl));
}

}  // namespace

Tensor detail::tensor_from(const double* values, size_t count, IntSpan sizes) {
  return from_values(values, count, sizes, default_dtype());
}
Tensor detail::tensor_from(const float* values, size_t count, IntSpan sizes) {
  return from_values(values, count, sizes, DType::kFloat32);
}
Tensor detail::tensor_from(const int64_t* values, size_t count, IntSpan sizes) {
  return from_values(values, count, sizes, DType::kInt64);
}
Tensor detail::tensor_from(const bool* values, size_t count, IntSpan sizes) {
  return from_values(values, count, sizes, DType::kBool);
}

}  // namespace taeda
