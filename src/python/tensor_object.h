// The Python type `Tensor`: a heap type whose objects hold one taeda::Tensor.
//
// A TensorImpl has at most one Python object, so identity is kept (`x.grad is x.grad`). The object
// owns one C++ reference; while C++ holds more, the impl holds a reference to the object
// (tensor_impl.h), so attributes and subclass survive. Objects of the exact type come from a free
// list, and are watched by the garbage collector only once they can be part of a cycle (attributes,
// hooks, a subclass).
#pragma once

#include "python/common.h"
#include "taeda/tensor.h"

namespace taeda::python {

struct TensorObject {
  PyObject_HEAD Tensor tensor;
  PyObject* weakrefs;
  PyObject* dict;  // null until an attribute is set
};

extern PyTypeObject* tensor_type;
// nn.Parameter, once its module is loaded: like Tensor, it never overrides operators.
extern PyTypeObject* parameter_type;

inline bool is_exact_tensor(PyObject* object) { return Py_TYPE(object) == tensor_type; }
// A Tensor or a Parameter, neither of which overrides operators.
[[gnu::always_inline]] inline bool is_plain_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || Py_TYPE(object) == parameter_type;
}
inline bool is_tensor(PyObject* object) {
  return is_plain_tensor(object) || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
// The tensor of an object that is_tensor(). Borrowed: valid while the object lives.
inline const Tensor& tensor_of(PyObject* object) {
  return reinterpret_cast<TensorObject*>(object)->tensor;
}

// The Python object of a tensor: the one it has, else a new Tensor. None for an undefined tensor.
// New reference.
PyObject* wrap(Tensor tensor);
// A new object of a subclass of Tensor (or Tensor itself) for a tensor that has no Python object
// yet.
PyObject* wrap_as(PyTypeObject* type, Tensor tensor);

// Makes the collector watch this object: something that may lead back to it (a hook, a Python node)
// hangs on it now.
void track_tensor(PyObject* object);

// The tensor's attribute dictionary, or null (borrowed).
inline PyObject* tensor_dict(PyObject* object) {
  return reinterpret_cast<TensorObject*>(object)->dict;
}

}  // namespace taeda::python
