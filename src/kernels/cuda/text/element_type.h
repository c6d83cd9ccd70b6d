// The dtypes that kernels read and write, with the numbers of DType.
#pragma once
#include <cstdint>

namespace taeda::device {

enum class ElementType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128
};

}  // namespace taeda::device
