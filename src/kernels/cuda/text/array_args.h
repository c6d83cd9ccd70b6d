// Array: a tensor without strides, as kernels' arguments have it.
#pragma once
#include "kernels/cuda/text/element_type.h"

namespace taeda::device {

// data is null where the tensor is left out.
struct Array {
  char* data;
  ElementType type;
};

}  // namespace taeda::device
