// The containers that a pickle makes and fills: each element is charged and each key is checked.
#pragma once

#include <vector>

#include "python/unpickle/budget.h"

namespace taeda::python {

class UnpickledContainers {
 public:
  UnpickledContainers(UnpickleBudget& budget, const UnpickleRules& rules)
      : budget_(budget), rules_(rules) {}

  PyRef frozen_set(const std::vector<PyRef>& values);
  // A list or set.
  void append(PyObject* target, const std::vector<PyRef>& values);
  // A dict, OrderedDict or Counter; key, value, key, value, ...
  void set_items(PyObject* target, const std::vector<PyRef>& values);
  // A call of a container's type; null for any other function.
  PyRef call(PyObject* type, PyObject* args);

 private:
  void add_key(PyObject* set, PyObject* key);
  void set_item(PyObject* target, PyObject* key, PyObject* value);
  void append_to_user(PyObject* target, const std::vector<PyRef>& values);
  void set_item_of_user(PyObject* target, PyObject* key, PyObject* value);
  PyObject* optional_argument(PyObject* args, const char* type) const;
  PyRef make_set(PyRef set, PyObject* args);
  PyRef make_ordered_dict(PyObject* args);
  PyRef make_counter(PyObject* args);
  bool is_counter(PyObject* value) const {
    return reinterpret_cast<PyObject*>(Py_TYPE(value)) == rules_.counter.get();
  }

  UnpickleBudget& budget_;
  const UnpickleRules& rules_;
};

}  // namespace taeda::python
