#include "taeda/values.h"

#include "core/layout.h"

namespace taeda {
namespace {

template <class T, class From>
Tensor from_values(const From* values, size_t count, IntSpan sizes) {
  const auto n = static_cast<int64_t>(count);
  TD_CHECK(checked_numel(sizes) == n, "tensor: shape {} is invalid for {} values", sizes, n);
  const DType dtype = kDTypeOf<T>;
  Ref<TensorImpl> impl(new TensorImpl(Storage::allocate(n * item_size(dtype), DeviceType::kCPU),
                                      dtype, DeviceType::kCPU));
  impl->set_contiguous_layout(sizes);
  auto* data = static_cast<T*>(impl->data());
  for (size_t i = 0; i < count; i++) {
    if constexpr (sizeof(T) == 2)
      data[i] = T(static_cast<float>(values[i]));
    else
      data[i] = static_cast<T>(values[i]);
  }
  return Tensor(std::move(impl));
}

}  // namespace

Tensor detail::tensor_from(const double* values, size_t count, IntSpan sizes) {
  switch (default_dtype()) {
    case DType::kFloat16:
      return from_values<Half>(values, count, sizes);
    case DType::kBFloat16:
      return from_values<BFloat16>(values, count, sizes);
    case DType::kFloat64:
      return from_values<double>(values, count, sizes);
    default:
      return from_values<float>(values, count, sizes);
  }
}
Tensor detail::tensor_from(const float* values, size_t count, IntSpan sizes) {
  return from_values<float>(values, count, sizes);
}
Tensor detail::tensor_from(const int64_t* values, size_t count, IntSpan sizes) {
  return from_values<int64_t>(values, count, sizes);
}
Tensor detail::tensor_from(const bool* values, size_t count, IntSpan sizes) {
  return from_values<bool>(values, count, sizes);
}

}  // namespace taeda
