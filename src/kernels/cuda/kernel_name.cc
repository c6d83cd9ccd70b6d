#include "kernels/cuda/kernel_name.h"

#include "taeda/error.h"

namespace taeda::cuda {

static_assert(static_cast<int>(device::ElementType::kFloat16) == static_cast<int>(DType::kFloat16));
static_assert(static_cast<int>(device::ElementType::kComplex128) + 1 == kNumArithmeticDTypes);

std::string kernel_name(std::string_view loop, DType type, std::string_view form) {
  constexpr std::string_view kSuffixes[kNumArithmeticDTypes] = {
      "b", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"};
  return std::string(loop).append("_").append(kSuffixes[static_cast<int>(type)]).append(form);
}

device::ElementType element_type(DType type) {
  if (is_storage_type(type))
    fail(ErrorKind::kNotImplemented, "kernels for CUDA do not compute with {}", type);
  return static_cast<device::ElementType>(type);
}

}  // namespace taeda::cuda
