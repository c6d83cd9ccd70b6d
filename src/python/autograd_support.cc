#include "python/autograd_support.h"

#include "python/tensor_object.h"

namespace taeda::python {

PythonException::PythonException() {
  PyErr_Fetch(&type_, &value_, &traceback_);
  if (!type_) {
    type_ = new_ref(PyExc_SystemError);
    value_ = PyUnicode_FromString("taeda: an error without a Python exception");
  }
}

PythonException::PythonException(const PythonException& other) noexcept {
  const EnsureGil gil;
  Py_XINCREF(type_ = other.type_);
  Py_XINCREF(value_ = other.value_);
  Py_XINCREF(traceback_ = other.traceback_);
}

PythonException::~PythonException() {
  if (!Py_IsInitialized()) return;
  const EnsureGil gil;
  // The drop may run Python code; an exception that is set meanwhile must survive it.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Py_XDECREF(type_);
  Py_XDECREF(value_);
  Py_XDECREF(traceback_);
  PyErr_Restore(type, value, traceback);
}

void PythonException::restore() const {
  Py_XINCREF(type_);
  Py_XINCREF(value_);
  Py_XINCREF(traceback_);
  PyErr_Restore(type_, value_, traceback_);
}

void drop_anywhere(PyObject* object) {
  if (!object || !Py_IsInitialized()) return;
  const EnsureGil gil;
  Py_DECREF(object);
}

Tensor tensor_or_none(PyObject* object, const char* what) {
  if (object == Py_None) return {};
  if (!is_tensor(object)) {
    raise_python(PyExc_TypeError, "expected Tensor or None for {}, but got {}", what,
                 type_name(object));
  }
  return tensor_of(object);
}

PyRef tuple_of(const TensorList& tensors) {
  PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); i++)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     PyRef::check(wrap(tensors[i])).release());
  return tuple;
}

PyRef new_hook_dict() {
  PyRef collections = PyRef::check(PyImport_ImportModule("collections"));
  PyRef type = PyRef::check(PyObject_GetAttrString(collections.get(), "OrderedDict"));
  return PyRef::check(PyObject_CallNoArgs(type.get()));
}

PyObject* add_to_hook_dict(PyObject* dict, PyObject* hook) {
  static PyObject* handle_type = nullptr;
  if (!handle_type) {
    PyRef module = PyRef::check(PyImport_ImportModule("taeda.utils.hooks"));
    handle_type = PyRef::check(PyObject_GetAttrString(module.get(), "RemovableHandle")).release();
  }
  PyRef handle = PyRef::check(PyObject_CallOneArg(handle_type, dict));
  PyRef id = PyRef::check(PyObject_GetAttrString(handle.get(), "id"));
  check_status(PyObject_SetItem(dict, id.get(), hook));
  return handle.release();
}

}  // namespace taeda::python
