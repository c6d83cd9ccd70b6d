// Results of operators as Python objects: overloads of wrap() beside those for tensors and dtypes.
#pragma once

#include <tuple>

#include "python/common.h"
#include "python/objects.h"
#include "python/tensor_object.h"

namespace taeda::python {

inline PyObject* wrap(bool value) { return PyBool_FromLong(value); }
inline PyObject* wrap(int64_t value) { return PyLong_FromLongLong(value); }
inline PyObject* wrap(double value) { return PyFloat_FromDouble(value); }
inline PyObject* wrap(std::string_view value) {
  return PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()));
}
inline PyObject* wrap(const std::string& value) { return wrap(std::string_view(value)); }
PyObject* wrap(const Scalar& value);
PyObject* wrap_integer(const Scalar& value);  // a bool too as an int
inline PyObject* wrap(const DimVector& sizes) { return wrap(IntSpan(sizes)); }
// A tuple, as torch.split and torch.unbind return.
PyObject* wrap(TensorList tensors);

template <class... Ts>
PyObject* wrap(std::tuple<Ts...> values) {
  PyRef tuple = PyRef::check(PyTuple_New(sizeof...(Ts)));
  Py_ssize_t i = 0;
  std::apply(
      [&](auto&... value) {
        (PyTuple_SET_ITEM(tuple.get(), i++, PyRef::check(wrap(std::move(value))).release()), ...);
      },
      values);
  return tuple.release();
}

// A named tuple type, torch.return_types.NAME, made on first use.
struct ResultType {
  const char* name;       // "max"
  const char* fields[8];  // {"values", "indices"}, ended by null
  PyTypeObject* type = nullptr;

  // An instance with `count` unset items; throws when it cannot be made.
  PyObject* make();
  // An instance with the items of the tuple or list given as out=, whose reference it takes.
  PyObject* name_outputs(PyObject* outputs);
};

// Those of all operators, ended by null (generated).
extern ResultType* const kResultTypes[];

template <class... Ts>
PyObject* wrap_named(ResultType& result_type, std::tuple<Ts...> values) {
  PyRef tuple = PyRef::adopt(result_type.make());
  Py_ssize_t i = 0;
  std::apply(
      [&](auto&... value) {
        (PyStructSequence_SET_ITEM(tuple.get(), i++,
                                   PyRef::check(wrap(std::move(value))).release()),
         ...);
      },
      values);
  return tuple.release();
}

}  // namespace taeda::python
