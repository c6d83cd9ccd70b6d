// How the parts of the extension module taeda._C come together.
#pragma once

#include "python/common.h"

namespace taeda::python {

// METH_FASTCALL and METH_KEYWORDS functions as the PyCFunction that PyMethodDef wants.
template <class F>
PyCFunction as_function(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// Puts in front of docstrings that begin with a call (`size(dim=None) -> int`) what
// inspect.signature reads; the table ends with a null name.
void add_signatures(PyMethodDef* functions, bool methods);

// "torch.add", "Tensor.add", "nn.functional.relu" -> the callable that users know. New reference.
PyObject* public_function(const char* qualified);

// Each part adds its types and functions to the module, in this order; PythonError on failure.
void add_objects(PyObject* module);
void add_storage(PyObject* module);
void add_tensor_type(PyObject* module);
void add_tensor_methods(PyTypeObject* type);
void add_conversions(PyObject* module);
void add_interop(PyObject* module);
void add_settings(PyObject* module);
void add_memory(PyObject* module);
void add_cuda(PyObject* module);
void add_fallback(PyObject* module);
void add_handover(PyObject* module);
void add_files(PyObject* module);
void add_worker_channel(PyObject* module);
void add_shared_pages(PyObject* module);
void add_pickler(PyObject* module);
void add_unpickler(PyObject* module);
void add_operators(PyObject* module);  // operator_object.cc
void add_library(PyObject* module);    // operator_library.cc
void add_optimizer_lists(PyObject* module);
void add_processes(PyObject* module);
void add_profile(PyObject* module);
void add_vmap(PyObject* module);
void add_sparse(PyObject* module);

// Makes a heap type from its spec and publishes it as module.NAME; the reference is kept for good.
PyTypeObject* add_type(PyObject* module, const char* name, PyType_Spec* spec,
                       PyTypeObject* base = nullptr);

}  // namespace taeda::python
