// What the Tensor type asks of autograd until the bindings of autograd stand: it raises
// NotImplementedError.
#include "python/autograd.h"

namespace taeda::python {
void add_autograd(PyObject*) {}
PyObject* grad_fn_object(const Tensor&) { Py_RETURN_NONE; }
int64_t output_number(const Tensor&) { return 0; }
bool retains_grad(const Tensor&) { return false; }
PyObject* register_tensor_hook(const Tensor&, PyObject*) {
  raise_python(PyExc_NotImplementedError, "Tensor.register_hook");
}
PyObject* register_post_accumulate_hook(const Tensor&, PyObject*) {
  raise_python(PyExc_NotImplementedError, "Tensor.register_post_accumulate_grad_hook");
}
int traverse_autograd(const Tensor&, visitproc, void*) { return 0; }
void clear_autograd(const Tensor&) {}
}  // namespace taeda::python
