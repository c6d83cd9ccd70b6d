// One element of any dtype, as a number.
#pragma once

#include "taeda/dtype.h"
#include "taeda/scalar.h"

namespace taeda {

// The element of type `t` at `data`, which need not be aligned.
Scalar read_element(DType t, const void* data);
// Stores `value`, converted as Scalar::to does (RuntimeError where it does not fit).
void write_element(DType t, void* data, const Scalar& value);

}  // namespace taeda
