// The __torch_dispatch__ protocol: Python code in the place of an operator's kernel.
//
// An active TorchDispatchMode, or an argument whose class has a __torch_dispatch__, receives each
// dispatched operator below autograd, with the operator's object and its arguments. Tensors of such
// classes carry Key::kPython; while modes are active the thread includes it.
#pragma once

#include "python/common.h"
#include "taeda/keys.h"

namespace taeda::python {

// Whether the class has a __torch_dispatch__ that is not Tensor's own.
bool has_torch_dispatch(PyTypeObject* type);

// The calling thread's modes, for a thread that goes on with its work.
PyRef torch_dispatch_modes();  // a list; may be null
void set_torch_dispatch_modes(PyObject* modes);

void add_torch_dispatch(PyObject* module);

}  // namespace taeda::python
