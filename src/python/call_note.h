// The note of an operator's exception: which function, called with what.
#pragma once

#include "python/arguments.h"

namespace taeda::python {

// In place of TD_PYTHON_CATCH: sets the Python exception of the C++ one that is being handled, with
// a note that names the function and its arguments, "In torch.add(input=[2, 3] float32, ...)".
// Returns null. Costs nothing until something fails.
PyObject* fail_call(const Function& function, PyObject* self, PyObject* const* args,
                    Py_ssize_t nargs, PyObject* kwnames) noexcept;

// The same for x[index], and for x[index] = value, whose value is null otherwise:
// "In torch.Tensor.__getitem__([3] float32, 5)".
void fail_item(PyObject* self, PyObject* index, PyObject* value) noexcept;

}  // namespace taeda::python
