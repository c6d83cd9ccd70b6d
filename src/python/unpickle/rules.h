// What a pickle may name, call and fill: taeda.serialization._safe_pickle's rules, as they are
// asked.
#pragma once

#include <unordered_map>

#include "python/common.h"
#include "python/unpickle/cost.h"

namespace taeda::python {

struct UnpickleRules {
  explicit UnpickleRules(PyObject* rules)
      : find(attribute(rules, "find")),
        call(attribute(rules, "call")),
        make(attribute(rules, "make")),
        build(attribute(rules, "build")),
        error(attribute(rules, "error")),
        over_memory(attribute(rules, "over_memory")),
        counter(attribute(rules, "counter")),
        user_values(attribute(rules, "user_values")) {
    const PyRef table = attribute(rules, "costs");
    PyObject *function, *cost;
    for (Py_ssize_t at = 0; PyDict_Next(table.get(), &at, &function, &cost);) {
      long long memory, effort;
      if (!PyArg_ParseTuple(cost, "LL", &memory, &effort)) throw PythonError();
      costs[function] = {memory, effort};
    }
  }

  // UnpicklingError: what the file says cannot be.
  template <class... Args>
  [[noreturn]] void fail(std::string_view message, const Args&... args) const {
    raise_python(error.get(), message, args...);
  }

  // Whether an object is of a class that the user lets files name: its methods may run.
  bool is_of_user(PyObject* object) const {
    PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(user_values.get()); i++)
      if (PyList_GET_ITEM(user_values.get(), i) == type) return true;
    return false;
  }

  PyRef find, call, make, build, error, over_memory, counter;
  PyRef user_values;                          // a list
  std::unordered_map<PyObject*, Cost> costs;  // checked functions that may be called as they are

 private:
  static PyRef attribute(PyObject* object, const char* name) {
    return PyRef::check(PyObject_GetAttrString(object, name));
  }
};

}  // namespace taeda::python
