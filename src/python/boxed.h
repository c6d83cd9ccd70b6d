// Values and Python objects: how operators are called by their schema from Python, and Python code
// by operators.
#pragma once

#include "python/common.h"
#include "taeda/operator.h"

namespace taeda::python {

// The object as the argument's type; nothing where it is none. Numbers stand for tensors as in
// torch.ops. PythonError where a conversion raises.
std::optional<Value> to_value(PyObject* object, const SchemaType& type);

// New reference. Numbers that were made tensors become numbers again, lists are lists.
PyObject* wrap(const Value& value);

// A stack with all arguments of a call: RuntimeError naming operator and argument where one is
// missing, unknown, given twice or of another type. `kwargs` may be null.
Stack bind_arguments(const Operator& op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwargs);

// The arguments as a program would write them: by position, keyword-only ones by name, without
// those at the end that have their default.
struct PythonCall {
  PyRef args, kwargs;
};
PythonCall python_call(const Schema& schema, const Stack& stack);

// Results for Python: None, the only one, or a tuple.
PyRef wrap_results(const Stack& stack);
// What Python code returned as the results of `schema`; RuntimeError naming `who` where it is not.
void unwrap_results(const Schema& schema, PyObject* returned, const std::string& who, Stack& stack);

}  // namespace taeda::python
