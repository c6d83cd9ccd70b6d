#include "python/torch_function.h"

#include <vector>

#include "python/arguments.h"
#include "python/call.h"
#include "python/module.h"
#include "python/torch_dispatch.h"

namespace taeda::python {
namespace {

thread_local int subclass_disabled = 0;  // DisableTorchFunctionSubclass
thread_local PyObject* modes = nullptr;  // list of active TorchFunctionModes, innermost last
PyObject* disabled_implementation = nullptr;
PyObject* torch_function_name = nullptr;

// The class's __torch_function__ (borrowed), or null.
PyObject* find_implementation(PyTypeObject* type) {
  return _PyType_Lookup(type, torch_function_name);
}

bool is_basic(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyTuple_Type ||
         type == &PyList_Type || type == &PyUnicode_Type || type == &PyBool_Type ||
         type == &PyDict_Type || type == Py_TYPE(Py_None) || type == &PySlice_Type ||
         type == dtype_type || type == device_type;
}

// Arguments that override, subclasses before their bases, else in order of appearance; one per
// type. Python code may take them out of their sequences meanwhile.
void collect(PyObject* value, std::vector<PyRef>& found, bool inside_sequence = false) {
  if (!inside_sequence && (PyTuple_Check(value) || PyList_Check(value)) &&
      !overrides_torch_function(value)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
      collect(PySequence_Fast_GET_ITEM(value, i), found, true);
    }
    return;
  }
  if (!overrides_torch_function(value)) return;
  for (const PyRef& other : found) {
    if (Py_TYPE(other.get()) == Py_TYPE(value)) return;
  }
  size_t at = 0;
  while (at < found.size() && !PyType_IsSubtype(Py_TYPE(value), Py_TYPE(found[at].get()))) at++;
  found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), PyRef::share(value));
}

// Under the GIL.
void count_modes(int change) {
  Arguments::torch_function_modes += change;
  modes_of_all_threads += change;
}

PyObject* call_mode(PyObject* function, PyObject* types, PyObject* args, PyObject* kwargs) {
  const Py_ssize_t last = PyList_GET_SIZE(modes) - 1;
  PyRef mode = PyRef::share(PyList_GET_ITEM(modes, last));
  check_status(
      PyList_SetSlice(modes, last, last + 1, nullptr));  // the mode's own calls go to the next one
  count_modes(-1);
  PyObject* result = call_python([&] {
    return PyObject_CallMethod(mode.get(), "__torch_function__", "OOOO", function, types, args,
                               kwargs ? kwargs : Py_None);
  });
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyList_Append(modes, mode.get());
  count_modes(1);
  PyErr_Restore(type, value, trace);
  return result;
}

std::string attribute_text(PyObject* object, const char* name) {
  PyRef value = PyRef::adopt(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return value && PyUnicode_Check(value.get()) ? std::string(utf8(value.get())) : "";
}

// "torch.add", "torch.Tensor.add", "torch.Tensor.shape.__get__", "torch.linalg.linalg_inv": as
// PyTorch's messages name a function.
std::string full_name(PyObject* function) {
  const std::string name = attribute_text(function, "__name__");
  std::string module = attribute_text(function, "__module__");
  if (module.empty()) {
    PyRef property = PyRef::adopt(PyObject_GetAttrString(function, "__self__"));
    if (!property) PyErr_Clear();
    const std::string inner = name == "__get__" && property
                                  ? attribute_text(property.get(), "__name__") + "." + name
                                  : name;
    return "torch.Tensor." + inner;
  }
  if (module.starts_with("taeda")) module.replace(0, 5, "torch");
  for (const char* owner : {"linalg", "special", "fft"}) {
    if (module == std::string("torch._C._") + owner)
      return std::string("torch.") + owner + "." + name;
  }
  return module + "." + name;
}

// TypeError: neither the mode (or null) nor any of the arguments handles the function.
[[noreturn]] void fail_unhandled(PyObject* function, const std::vector<PyRef>& found,
                                 PyObject* mode) {
  const bool in_python =
      !PyCFunction_Check(function) &&
      PyObject_IsInstance(function, reinterpret_cast<PyObject*>(&PyFunction_Type));
  PyRef types = PyRef::check(PyList_New(0));
  std::string handlers;
  if (mode)
    handlers += "\n  - mode object " + std::string(utf8(PyRef::check(PyObject_Repr(mode)).get()));
  for (const PyRef& object : found) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object.get()));
    check_status(PyList_Append(types.get(), type));
    handlers +=
        "\n  - tensor subclass " + std::string(utf8(PyRef::check(PyObject_Repr(type)).get()));
  }
  if (!in_python) {
    raise_python(
        PyExc_TypeError,
        "Multiple dispatch failed for '{}'; all __torch_function__ handlers returned "
        "NotImplemented:\n{}\n\nA handler calls func(*args, **kwargs) for what it does not "
        "handle itself",
        full_name(function), handlers);
  }
  PyRef list = PyRef::check(PyObject_Repr(types.get()));
  const std::string rest =
      mode ? " nor in mode " + std::string(utf8(PyRef::check(PyObject_Repr(mode)).get())) : "";
  raise_python(PyExc_TypeError,
               "no implementation found for '{}' on types that implement __torch_function__: {}{}",
               full_name(function), utf8(list.get()), rest);
}

PyObject* call_overrides(PyObject* function, const std::vector<PyRef>& found, PyObject* args,
                         PyObject* kwargs) {
  PyRef types = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(found.size())));
  for (size_t i = 0; i < found.size(); i++) {
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     new_ref(reinterpret_cast<PyObject*>(Py_TYPE(found[i].get()))));
  }
  PyRef mode;
  if (modes && PyList_GET_SIZE(modes) > 0) {
    mode = PyRef::share(PyList_GET_ITEM(modes, PyList_GET_SIZE(modes) - 1));
    PyRef result = PyRef::check(call_mode(function, types.get(), args, kwargs));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  for (const PyRef& object : found) {
    PyRef method = PyRef::check(
        PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(object.get())), torch_function_name));
    PyRef result = PyRef::check(call_python([&] {
      return PyObject_CallFunctionObjArgs(method.get(), function, types.get(), args,
                                          kwargs ? kwargs : nullptr, nullptr);
    }));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  fail_unhandled(function, found, mode.get());
}

// has_torch_function(args): whether any of the sequence's elements overrides.
PyObject* has_torch_function(PyObject*, PyObject* relevant) {
  TD_PYTHON_TRY
  if (Arguments::torch_function_modes > 0) Py_RETURN_TRUE;
  PyRef items = PyRef::check(PySequence_Fast(relevant, "expected a sequence"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
    if (overrides_torch_function(PySequence_Fast_GET_ITEM(items.get(), i))) Py_RETURN_TRUE;
  }
  Py_RETURN_FALSE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* has_torch_function_variadic(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (Arguments::torch_function_modes > 0) Py_RETURN_TRUE;
  for (Py_ssize_t i = 0; i < nargs; i++) {
    if (overrides_torch_function(args[i])) Py_RETURN_TRUE;
  }
  Py_RETURN_FALSE;
}

// handle_torch_function(public_api, relevant_args, *args, **kwargs)
PyObject* handle_torch_function(PyObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  if (PyTuple_GET_SIZE(args) < 2) {
    raise_python(PyExc_TypeError, "handle_torch_function() takes at least 2 arguments");
  }
  std::vector<PyRef> found;
  PyRef relevant = PyRef::check(PySequence_Fast(PyTuple_GET_ITEM(args, 1), "expected a sequence"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(relevant.get()); i++) {
    collect(PySequence_Fast_GET_ITEM(relevant.get(), i), found);
  }
  PyRef rest = PyRef::check(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
  PyRef empty = kwargs ? PyRef() : PyRef::check(PyDict_New());
  return call_overrides(PyTuple_GET_ITEM(args, 0), found, rest.get(),
                        kwargs ? kwargs : empty.get());
  TD_PYTHON_CATCH(nullptr)
}

// func(*args, **kwargs) without looking at subclasses: the body of `__torch_function__ =
// _disabled_torch_function_impl`.
PyObject* disabled_torch_function(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *function, *types, *call_args = nullptr, *call_kwargs = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &call_args, &call_kwargs)) return nullptr;
  const DisableTorchFunctionSubclass disable;
  return call_with(function, call_args, call_kwargs).release();
  TD_PYTHON_CATCH(nullptr)
}

// The arguments of a call as a tuple and a dict, and those among them that override it.
struct GivenArguments {
  GivenArguments(PyObject* const* values, Py_ssize_t nargs, PyObject* kwnames)
      : args(PyRef::check(PyTuple_New(nargs))), kwargs(PyRef::check(PyDict_New())) {
    for (Py_ssize_t i = 0; i < nargs; i++) {
      collect(values[i], overrides);
      PyTuple_SET_ITEM(args.get(), i, new_ref(values[i]));
    }
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
      PyObject* const value = values[nargs + k];
      collect(value, overrides);
      check_status(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, k), value));
    }
  }

  PyRef args, kwargs;
  std::vector<PyRef> overrides;
};

// `_set_torch_function_state(delta)`: what DisableTorchFunctionSubclass enters and leaves with.
PyObject* disable_subclasses(PyObject*, PyObject* delta) {
  const long change = PyLong_AsLong(delta);
  if (change == -1 && PyErr_Occurred()) return nullptr;
  if (change < -1 || change > 1 || subclass_disabled + change < 0) {
    PyErr_SetString(PyExc_ValueError, "_disable_torch_function_subclass(): leave without enter");
    return nullptr;
  }
  subclass_disabled += static_cast<int>(change);
  Py_RETURN_NONE;
}

PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(subclass_disabled == 0); }

PyObject* push_mode(PyObject*, PyObject* mode) {
  if (!modes && !(modes = PyList_New(0))) return nullptr;
  if (PyList_Append(modes, mode) < 0) return nullptr;
  count_modes(1);
  Py_RETURN_NONE;
}

PyObject* pop_mode(PyObject*, PyObject*) {
  const Py_ssize_t size = modes ? PyList_GET_SIZE(modes) : 0;
  if (size == 0) {
    PyErr_SetString(PyExc_RuntimeError, "no TorchFunctionMode is active");
    return nullptr;
  }
  PyRef mode = PyRef::share(PyList_GET_ITEM(modes, size - 1));
  if (PyList_SetSlice(modes, size - 1, size, nullptr) < 0) return nullptr;
  count_modes(-1);
  return mode.release();
}

PyMethodDef functions[] = {
    {"_has_torch_function", has_torch_function, METH_O, nullptr},
    {"_has_torch_function_variadic", as_function(has_torch_function_variadic), METH_FASTCALL,
     nullptr},
    {"_handle_torch_function", as_function(handle_torch_function), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"_disabled_torch_function_impl", disabled_torch_function, METH_VARARGS, nullptr},
    {"_disable_torch_function_subclass", disable_subclasses, METH_O, nullptr},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_push_on_torch_function_stack", push_mode, METH_O, nullptr},
    {"_pop_torch_function_stack", pop_mode, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

DisableTorchFunctionSubclass::DisableTorchFunctionSubclass() { subclass_disabled++; }
DisableTorchFunctionSubclass::~DisableTorchFunctionSubclass() { subclass_disabled--; }

PyRef call_with(PyObject* function, PyObject* args, PyObject* kwargs) {
  const PyRef positional =
      args ? PyRef::check(PySequence_Tuple(args)) : PyRef::check(PyTuple_New(0));
  if (kwargs == Py_None) kwargs = nullptr;
  if (kwargs && !PyDict_Check(kwargs))
    raise_python(PyExc_TypeError, "__torch_function__: kwargs must be a dict, not {}",
                 type_name(kwargs));
  return PyRef::check(
      call_python([&] { return PyObject_Call(function, positional.get(), kwargs); }));
}

bool keeps_plain_result(PyObject* function) {
  // Property getters are method wrappers of getset descriptors.
  PyRef owner = PyRef::adopt(PyObject_GetAttrString(function, "__self__"));
  if (!owner) {
    PyErr_Clear();
    return false;
  }
  if (Py_TYPE(owner.get()) != &PyGetSetDescr_Type) return false;
  const std::string_view name = reinterpret_cast<PyGetSetDescrObject*>(owner.get())->d_getset->name;
  return name == "grad" || name == "_grad" || name == "_base";
}

TorchFunctionState torch_function_state() {
  return {modes ? PyRef::check(PySequence_List(modes)) : PyRef(), subclass_disabled};
}
void set_torch_function_state(const TorchFunctionState& state) {
  PyRef list = state.modes ? PyRef::check(PySequence_List(state.modes.get())) : PyRef();
  const Py_ssize_t before = modes ? PyList_GET_SIZE(modes) : 0,
                   after = list ? PyList_GET_SIZE(list.get()) : 0;
  count_modes(static_cast<int>(after - before));
  subclass_disabled = state.subclass_disabled;
  Py_XDECREF(std::exchange(modes, list.release()));
}

int modes_of_all_threads = 0;

bool mode_is_active() { return Arguments::torch_function_modes > 0; }

PyRef hand_over(const char* method, std::initializer_list<PyObject*> args) {
  const PyRef function =
      PyRef::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), method));
  return PyRef::check(call_torch_function(function.get(), args.begin(),
                                          static_cast<Py_ssize_t>(args.size()), nullptr));
}

bool overrides_torch_function(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == tensor_type || type == parameter_type || is_basic(type) || subclass_disabled > 0)
    return false;
  PyObject* implementation = find_implementation(type);
  if (!implementation || implementation == disabled_implementation) return false;
  // Tensor's own only makes results instances of the class, which a __torch_dispatch__ decides.
  return implementation != find_implementation(tensor_type) || !has_torch_dispatch(type);
}

bool is_overridden_by(PyObject* argument) {
  if (overrides_torch_function(argument)) return true;
  if (!PyTuple_Check(argument) && !PyList_Check(argument)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(argument); i++) {
    if (overrides_torch_function(PySequence_Fast_GET_ITEM(argument, i))) return true;
  }
  return false;
}

PyObject* call_torch_function(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames) {
  TD_PYTHON_TRY
  const GivenArguments given(args, nargs, kwnames);
  return call_overrides(function, given.overrides, given.args.get(), given.kwargs.get());
  TD_PYTHON_CATCH(nullptr)
}

PyObject* call_torch_function_by_name(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                                      PyObject* kwnames) {
  TD_PYTHON_TRY
  const GivenArguments given(args, nargs, kwnames);
  const PyRef module = PyRef::check(PyImport_ImportModule("taeda.nn._functional.handover"));
  const PyRef arranged = PyRef::check(PyObject_CallMethod(module.get(), "arranged", "OOO", function,
                                                          given.args.get(), given.kwargs.get()));
  return call_overrides(function, given.overrides, PyTuple_GetItem(arranged.get(), 0),
                        PyTuple_GetItem(arranged.get(), 1));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* Arguments::call_override() {
  PyRef function = PyRef::check(public_function(function_.qualified));
  if (!function_.method) {
    const bool layer = std::string_view(function_.qualified).starts_with("nn.functional.");
    return (layer ? call_torch_function_by_name : call_torch_function)(function.get(), args_,
                                                                       nargs_, kwnames_);
  }
  std::vector<PyObject*> all = {self_};
  const Py_ssize_t keywords = kwnames_ ? PyTuple_GET_SIZE(kwnames_) : 0;
  all.insert(all.end(), args_, args_ + nargs_ + keywords);
  return call_torch_function(function.get(), all.data(), nargs_ + 1, kwnames_);
}

void add_torch_function(PyObject* module) {
  torch_function_name = interned("__torch_function__");
  check_status(PyModule_AddFunctions(module, functions));
  disabled_implementation = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
}

}  // namespace taeda::python
