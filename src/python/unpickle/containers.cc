#include "python/unpickle/containers.h"

namespace taeda::python {

PyRef UnpickledContainers::frozen_set(const std::vector<PyRef>& values) {
  PyRef set = PyRef::check(PyFrozenSet_New(nullptr));
  budget_.charge(kSet);
  for (const PyRef& value : values) add_key(set.get(), value.get());
  return set;
}

void UnpickledContainers::append(PyObject* target, const std::vector<PyRef>& values) {
  if (PyList_Check(target) && rules_.is_of_user(target)) return append_to_user(target, values);
  const bool is_list = PyList_CheckExact(target);
  if (!is_list && Py_TYPE(target) != &PySet_Type)
    rules_.fail("load: values are appended to a {}", type_name(target));
  for (const PyRef& value : values) {
    if (is_list) {
      budget_.charge(kItem);
      check_status(PyList_Append(target, value.get()));
    } else {
      add_key(target, value.get());
    }
  }
}

void UnpickledContainers::set_items(PyObject* target, const std::vector<PyRef>& values) {
  const bool of_user = PyDict_Check(target) && rules_.is_of_user(target);
  if (!PyDict_CheckExact(target) && !PyODict_CheckExact(target) && !is_counter(target) && !of_user)
    rules_.fail("load: items are set on a {}", type_name(target));
  for (size_t i = 0; i < values.size(); i += 2)
    of_user ? set_item_of_user(target, values[i].get(), values[i + 1].get())
            : set_item(target, values[i].get(), values[i + 1].get());
}

// As Python's unpickler does, by the class's own methods.
void UnpickledContainers::append_to_user(PyObject* target, const std::vector<PyRef>& values) {
  static PyObject* const name = interned("append");
  for (const PyRef& value : values) {
    budget_.charge(kUser);
    PyRef::check(PyObject_CallMethodOneArg(target, name, value.get()));
  }
}

void UnpickledContainers::set_item_of_user(PyObject* target, PyObject* key, PyObject* value) {
  budget_.charge(kUser);
  budget_.charge_key(target, key, kKey);
  check_status(PyObject_SetItem(target, key, value));
}

PyRef UnpickledContainers::call(PyObject* type, PyObject* args) {
  if (type == reinterpret_cast<PyObject*>(&PySet_Type))
    return make_set(PyRef::check(PySet_New(nullptr)), args);
  if (type == reinterpret_cast<PyObject*>(&PyFrozenSet_Type))
    return make_set(PyRef::check(PyFrozenSet_New(nullptr)), args);
  if (type == reinterpret_cast<PyObject*>(&PyODict_Type)) return make_ordered_dict(args);
  if (type == rules_.counter.get()) return make_counter(args);
  return PyRef();
}

void UnpickledContainers::add_key(PyObject* set, PyObject* key) {
  budget_.store_key(set, key, kKey, [=] { return PySet_Add(set, key); });
}

void UnpickledContainers::set_item(PyObject* target, PyObject* key, PyObject* value) {
  const bool ordered = PyODict_CheckExact(target);
  budget_.store_key(target, key, ordered ? kOrderedKey : kKey, [=] {
    return ordered ? PyODict_SetItem(target, key, value) : PyDict_SetItem(target, key, value);
  });
}

// The only argument, null if there is none.
PyObject* UnpickledContainers::optional_argument(PyObject* args, const char* type) const {
  if (PyTuple_GET_SIZE(args) > 1) rules_.fail("load: {} was given several arguments", type);
  return PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : nullptr;
}

PyRef UnpickledContainers::make_set(PyRef set, PyObject* args) {
  budget_.charge(kSet);
  PyObject* values = optional_argument(args, "set");
  if (!values) return set;
  if (!PyList_CheckExact(values) && !PyTuple_CheckExact(values) && !PyAnySet_CheckExact(values))
    rules_.fail("load: set was given something else than a list");
  const PyRef items = PyRef::check(PySequence_List(values));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); i++)
    add_key(set.get(), PyList_GET_ITEM(items.get(), i));
  return set;
}

PyRef UnpickledContainers::make_ordered_dict(PyObject* args) {
  budget_.charge(kOrderedDict);
  PyRef dict = PyRef::check(PyODict_New());
  PyObject* pairs = optional_argument(args, "OrderedDict");
  if (!pairs) return dict;
  const auto is_sequence = [](PyObject* x) {
    return PyList_CheckExact(x) || PyTuple_CheckExact(x);
  };
  if (!is_sequence(pairs)) rules_.fail("load: OrderedDict was given something else than pairs");
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(pairs); i++) {
    PyObject* pair = PySequence_Fast_GET_ITEM(pairs, i);
    if (!is_sequence(pair) || PySequence_Fast_GET_SIZE(pair) != 2)
      rules_.fail("load: OrderedDict was given something else than pairs");
    set_item(dict.get(), PySequence_Fast_GET_ITEM(pair, 0), PySequence_Fast_GET_ITEM(pair, 1));
  }
  return dict;
}

PyRef UnpickledContainers::make_counter(PyObject* args) {
  budget_.charge(kUser);
  PyRef counter = PyRef::check(PyObject_CallNoArgs(rules_.counter.get()));
  PyObject* values = optional_argument(args, "Counter");
  if (!values) return counter;
  if (!PyDict_CheckExact(values)) rules_.fail("load: Counter was given something else than a dict");
  PyObject *key, *count;
  for (Py_ssize_t at = 0; PyDict_Next(values, &at, &key, &count);)
    set_item(counter.get(), key, count);
  return counter;
}

}  // namespace taeda::python
