// What may become an element of another dtype.
#pragma once

#include "taeda/tensor.h"

namespace taeda {

// That the number which `value` holds can become an element of `dtype`, where it can be looked at;
// else a RuntimeError.
void check_element_fits(const Tensor& value, DType dtype);

}  // namespace taeda
