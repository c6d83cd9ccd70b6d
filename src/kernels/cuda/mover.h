// Kernels by an element's size alone (text/move.cuh).
#pragma once

#include <cstdint>

#include "taeda/dtype.h"

namespace taeda::cuda {

// The dtype that names the kernel that moves so many bytes, or elements of a dtype.
inline DType mover(int64_t bytes) {
  switch (bytes) {
    case 1:
      return DType::kUInt8;
    case 2:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    case 8:
      return DType::kInt64;
    default:
      return DType::kComplex128;
  }
}
inline DType mover(DType t) { return mover(item_size(t)); }

}  // namespace taeda::cuda
