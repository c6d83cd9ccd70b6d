#include "python/transforms.h"

#include "autograd/differentiated.h"
#include "autograd/reach.h"
#include "ops/functionalize/memory.h"
#include "python/autograd_support.h"
#include "python/call.h"
#include "python/module.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

// _functionalize_enter(copies_views): starts a level on this thread
PyObject* enter(PyObject*, PyObject* copies_views) {
  TD_PYTHON_TRY
  const int on = PyObject_IsTrue(copies_views);
  if (on < 0) return nullptr;
  functionalize::enter(on ? functionalize::Remove::kMutationsAndViews
                          : functionalize::Remove::kMutations);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* exit(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  functionalize::exit();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* wrap_functional(PyObject*, PyObject* tensor) {
  TD_PYTHON_TRY
  return wrap(functionalize::wrap(tensor_or_none(tensor, "functionalize")));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* unwrap_functional(PyObject*, PyObject* tensor) {
  TD_PYTHON_TRY
  return wrap(functionalize::unwrap(tensor_or_none(tensor, "functionalize")));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* is_written(PyObject*, PyObject* tensor) {
  TD_PYTHON_TRY
  return PyBool_FromLong(functionalize::is_written(tensor_or_none(tensor, "functionalize")));
  TD_PYTHON_CATCH(nullptr)
}

// _functionalize_outside(recording, function) -> function(), called as by the caller of the level,
// recorded where `recording`
PyObject* call_outside(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  int recording;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "pO:_functionalize_outside", &recording, &function)) return nullptr;
  TD_CHECK(functionalize::current_level(), "functionalize: no level is active");
  struct GradMode {
    const bool before = thread_modes.grad_enabled;
    ~GradMode() { thread_modes.grad_enabled = before; }
  } const restore;
  const functionalize::Outside outside;
  thread_modes.grad_enabled = recording;
  return call_python([&] { return PyObject_CallNoArgs(function); });
  TD_PYTHON_CATCH(nullptr)
}

TensorList tensors_in(PyObject* list) {
  TensorList found;
  const PyRef items = PyRef::check(PySequence_Fast(list, "expected a list of tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++)
    found.push_back(tensor_or_none(PySequence_Fast_GET_ITEM(items.get(), i), "transform"));
  return found;
}

// _reaches_other_leaves(outputs, known) -> whether the outputs were computed from leaves that
// require grad and are not among `known`
PyObject* reaches_other_leaves(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *outputs, *known;
  if (!PyArg_ParseTuple(args, "OO:_reaches_other_leaves", &outputs, &known)) return nullptr;
  return PyBool_FromLong(autograd::reaches_other_leaves(tensors_in(outputs), tensors_in(known)));
  TD_PYTHON_CATCH(nullptr)
}

// Whether operators of this thread are seen by a level of vmap or functionalize.
PyObject* level_is_active(PyObject*, PyObject*) {
  const KeySet active = thread_modes.included - thread_modes.excluded;
  return PyBool_FromLong(!(active & autograd::kLevelKeys).empty());
}

PyMethodDef functions[] = {
    {"_level_is_active", level_is_active, METH_NOARGS, nullptr},
    {"_reaches_other_leaves", reaches_other_leaves, METH_VARARGS, nullptr},
    {"_functionalize_outside", call_outside, METH_VARARGS, nullptr},
    {"_functionalize_enter", enter, METH_O, nullptr},
    {"_functionalize_exit", exit, METH_NOARGS, nullptr},
    {"_functionalize_wrap", wrap_functional, METH_O, nullptr},
    {"_functionalize_unwrap", unwrap_functional, METH_O, nullptr},
    {"_functionalize_is_written", is_written, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_transforms(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
