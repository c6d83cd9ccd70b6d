// The two kernels that every device has: moving elements and filling with a number.
//
// Any strides and dtypes. Between devices, on those without kernels of their own, and of types that
// kernels do not know, dense tensors are copied as bytes by the device; others go through the host,
// which waits for the device.
#pragma once

#include "kernels/view.h"
#include "taeda/scalar.h"

namespace taeda::kernels {

// dst = src, converted; the same sizes. A meta `dst` has no elements to write; NotImplementedError
// where only `src` is meta.
void copy(const View& dst, const View& src, bool non_blocking = false);
void fill(const View& dst, const Scalar& value);

}  // namespace taeda::kernels
