// Kernels by an element's size alone (text/move.cuh).
#pragma once

#include "taeda/dtype.h"

namespace taeda::cuda {

// The dtype that names the kernel that moves elements of `t`.
inline DType mover(DType t) {
  switch (item_size(t)) {
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

}  // namespace taeda::cuda
