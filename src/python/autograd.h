// What the Tensor type asks of autograd's bindings (src/python/autograd_*.cc).
#pragma once

#include "python/common.h"
#include "taeda/tensor.h"

namespace taeda::python {

// Adds the autograd types and functions (Node, Function's base, engine entry points, grad modes) to
// the module.
void add_autograd(PyObject* module);

// x.grad_fn: the Python object of the node that made `tensor`, or None. New reference.
PyObject* grad_fn_object(const Tensor& tensor);
// x.output_nr: which result of that node the tensor is.
int64_t output_number(const Tensor& tensor);
// x.retains_grad: a non-leaf that keeps its gradient.
bool retains_grad(const Tensor& tensor);
// x.register_hook(hook): returns a handle with remove().
PyObject* register_tensor_hook(const Tensor& tensor, PyObject* hook);
// x._backward_hooks: the dictionary of those functions, which may be exchanged, or None.
PyObject* backward_hooks(const Tensor& tensor);
void set_backward_hooks(const Tensor& tensor, PyObject* dict);
// x.register_post_accumulate_grad_hook(hook), likewise.
PyObject* register_post_accumulate_hook(const Tensor& tensor, PyObject* hook);
// What of Python hangs on a tensor's autograd record (hooks, custom nodes), for the garbage
// collector.
int traverse_autograd(const Tensor& tensor, visitproc visit, void* arg);
void clear_autograd(const Tensor& tensor);

}  // namespace taeda::python
