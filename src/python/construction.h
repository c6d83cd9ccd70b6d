// Tensors from Python data: torch.tensor, torch.as_tensor, Tensor(...).
#pragma once

#include "python/common.h"
#include "taeda/tensor.h"

namespace taeda::python {

// torch.tensor's data argument: numbers, nested sequences, arrays, tensors. Always new memory. The
// dtype follows PyTorch's inference unless given.
Tensor tensor_from_data(PyObject* data, OptDType dtype, OptDevice device);

// x on another device: itself, or an empty meta tensor; there is no other way yet.
Tensor on_device(const Tensor& x, Device device);

}  // namespace taeda::python
