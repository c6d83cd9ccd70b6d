// Memory shared with NumPy, DLPack and the buffer protocol.
#pragma once

#include "python/common.h"
#include "taeda/tensor.h"

namespace taeda::python {

// torch.from_numpy: a tensor on the array's memory. New reference; null with an exception set.
PyObject* tensor_from_array(PyObject* array);
// A tensor on the memory of an object with the buffer protocol, of its own shape and element type.
// `copy` makes the tensor independent. PythonError on failure.
Tensor tensor_from_buffer(PyObject* object, bool copy);
// A row-major copy-free ndarray of a CPU tensor.
PyObject* array_from_tensor(const Tensor& x);

// A tensor without history on new memory, row-major.
Tensor fresh_tensor(IntSpan sizes, DType dtype, Device device = {});

}  // namespace taeda::python
