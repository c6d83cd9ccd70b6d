// Pinned memory: host memory that devices copy from and to while the program goes on.
#pragma once

#include "taeda/tensor.h"

namespace taeda::python {

bool is_pinned(const Tensor& x);
// A copy of a CPU tensor in pinned memory; itself where it is there. RuntimeError without a device.
Tensor pinned(const Tensor& x);

}  // namespace taeda::python
