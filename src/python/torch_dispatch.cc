#include "python/torch_dispatch.h"

#include <algorithm>

#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "autograd/node.h"
#include "autograd/record.h"
#include "autograd/view_replay.h"
#include "core/strides.h"
#include "ops/allocate.h"
#include "ops/modes.h"
#include "ops/operator.h"
#include "ops/overloads.h"
#include "ops/overrides.h"
#include "python/arguments.h"
#include "python/autograd_support.h"
#include "python/boxed.h"
#include "python/call.h"
#include "python/gil.h"
#include "python/module.h"
#include "python/operator_object.h"
#include "python/tensor_object.h"

namespace taeda::python {
namespace {

thread_local PyObject* modes = nullptr;  // list of active TorchDispatchModes, innermost last
PyObject* disabled_implementation = nullptr;
PyObject *torch_dispatch_name = nullptr, *sees_table_name = nullptr;
// (operator's name, class) -> what answers for the class's __torch_dispatch__
// (torch.library.register_torch_dispatch).
PyObject* rules = nullptr;

Py_ssize_t mode_count() { return modes ? PyList_GET_SIZE(modes) : 0; }

void refresh_included() {
  thread_modes.included = mode_count() > 0 ? thread_modes.included | Key::kPython
                                           : thread_modes.included - Key::kPython;
}

// Takes the innermost mode off while its handler runs: what that calls goes to the next one.
class OuterModes {
 public:
  OuterModes() : mode_(PyRef::share(PyList_GET_ITEM(modes, mode_count() - 1))) {
    check_status(PyList_SetSlice(modes, mode_count() - 1, mode_count(), nullptr));
    refresh_included();
  }
  ~OuterModes() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (PyList_Append(modes, mode_.get()) < 0) PyErr_Clear();
    refresh_included();
    PyErr_Restore(type, value, trace);
  }
  PyObject* mode() const { return mode_.get(); }

 private:
  const PyRef mode_;
};

// Arguments whose classes take part, one a class, subclasses before their bases.
void collect(const Value& value, std::vector<PyRef>& found) {
  const auto add = [&](const Tensor& t) {
    if (!t.defined() || !t.impl()->keys.has(Key::kPython) || !t.impl()->python_object()) return;
    PyRef object = PyRef::share(static_cast<PyObject*>(t.impl()->python_object()));
    for (const PyRef& other : found)
      if (Py_TYPE(other.get()) == Py_TYPE(object.get())) return;
    size_t at = 0;
    while (at < found.size() && !PyType_IsSubtype(Py_TYPE(object.get()), Py_TYPE(found[at].get())))
      at++;
    found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), std::move(object));
  };
  if (value.is_tensor()) add(value.tensor());
  if (value.is_tensors())
    for (const Tensor& t : value.tensors()) add(t);
}

PyRef types_of(const std::vector<PyRef>& found) {
  PyRef types = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(found.size())));
  for (size_t i = 0; i < found.size(); i++)
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     new_ref(reinterpret_cast<PyObject*>(Py_TYPE(found[i].get()))));
  return types;
}

// A program's own function for this operator and class, or null.
PyRef rule_of(const Operator& which, PyObject* type) {
  if (PyDict_GET_SIZE(rules) == 0) return {};
  const PyRef key =
      PyRef::check(Py_BuildValue("(sO)", std::string(which.qualified_name()).c_str(), type));
  PyObject* rule = PyDict_GetItemWithError(rules, key.get());
  if (!rule && PyErr_Occurred()) throw PythonError();
  return PyRef::share(rule);
}

// A call as it is shown: the operator's object, its arguments, and what makes our operator's
// results of those of the one that is shown; null: they are the same.
struct Shown {
  PyRef op;
  PythonCall call;
  PyRef restore;
};

// Whether a mode's class says that it is shown the table's operators. A look-up in the cache of
// types.
bool sees_table(PyObject* mode) { return _PyType_Lookup(Py_TYPE(mode), sees_table_name); }

// Whether a call is one of a gradient's formula with constants of its own, for which PyTorch takes
// mul.Scalar and the like. A number that somebody else holds is one that the node has saved.
bool is_of_formula(const Stack& stack) {
  const autograd::Node* const node = autograd::Engine::current_node();
  if (!node || node->is_python()) return false;
  return std::none_of(stack.begin(), stack.end(), [](const Value& value) {
    return value.is_tensor() && value.tensor().defined() && value.tensor().impl()->wrapped_number &&
           value.tensor().impl()->use_count() > 3;
  });
}

// Operators of the table that PyTorch has under another name, with other arguments or as several
// are shown as PyTorch has them (taeda/_library/aten.py, `aten:` in the table), but to a mode whose
// class has _sees_table.
Shown shown(const Operator& op, const Stack& stack) {
  const auto as_it_is = [](const Operator& which, const Stack& arguments) {
    return Shown{PyRef::share(operator_object(which)), python_call(which.schema(), arguments), {}};
  };
  const bool as_table = mode_count() > 0 && sees_table(PyList_GET_ITEM(modes, mode_count() - 1));
  if (!op.record() || as_table) return as_it_is(op, stack);
  static PyObject* const spellings = [] {
    const PyRef module = PyRef::check(PyImport_ImportModule("taeda._library.aten"));
    return PyRef::check(PyObject_GetAttrString(module.get(), "SPELLINGS")).release();
  }();
  const auto as_overload = [&] {
    Stack arguments = stack;
    const Operator* const overload = overloads::of_call(op, arguments, is_of_formula(stack));
    return as_it_is(overload ? *overload : op, arguments);
  };
  PyObject* spell = PyDict_GetItemString(spellings, op.qualified_name().c_str());
  if (!spell) return as_overload();
  const Shown result = as_it_is(op, stack);
  const PyRef made = PyRef::check(call_python(
      [&] { return PyObject_Call(spell, result.call.args.get(), result.call.kwargs.get()); }));
  PyObject *shown_op, *args, *kwargs, *restore;
  if (!PyArg_ParseTuple(made.get(), "OO!O!O", &shown_op, &PyTuple_Type, &args, &PyDict_Type,
                        &kwargs, &restore))
    throw PythonError();
  if (shown_op == result.op.get()) return as_overload();
  return {PyRef::share(shown_op),
          {PyRef::share(args), PyRef::share(kwargs)},
          restore == Py_None ? PyRef() : PyRef::share(restore)};
}

// What the modes and the classes make of the call.
PyRef ask(PyObject* op, const std::vector<PyRef>& found, const PythonCall& call,
          const Operator& which) {
  const PyRef types = types_of(found);
  // `self`: a mode, or a class.
  const auto run = [&](PyObject* self, PyObject* type) {
    if (const PyRef rule = rule_of(which, type)) {
      return PyRef::check(call_python([&] {
        return PyObject_CallFunctionObjArgs(rule.get(), self, op, types.get(), call.args.get(),
                                            call.kwargs.get(), nullptr);
      }));
    }
    const PyRef method = PyRef::check(PyObject_GetAttr(self, torch_dispatch_name));
    return PyRef::check(call_python([&] {
      return PyObject_CallFunctionObjArgs(method.get(), op, types.get(), call.args.get(),
                                          call.kwargs.get(), nullptr);
    }));
  };
  if (mode_count() > 0 && thread_modes.included.has(Key::kPython)) {
    const OuterModes outer;
    PyRef result = run(outer.mode(), reinterpret_cast<PyObject*>(Py_TYPE(outer.mode())));
    if (result.get() != Py_NotImplemented) return result;
  }
  for (const PyRef& object : found) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object.get()));
    PyRef result = run(type, type);
    if (result.get() != Py_NotImplemented) return result;
  }
  const PyRef list = PyRef::check(PyObject_Repr(types.get()));
  raise_python(PyExc_TypeError,
               "Multiple dispatch failed for '{}'; all __torch_dispatch__ handlers returned "
               "NotImplemented:\n\n  - tensor subclasses {}",
               which.qualified_name(), utf8(list.get()));
}

// What an in-place operator has written counts as changed, although the memory is the class's own.
void count_writes(const Schema& schema, const Stack& arguments,
                  const std::vector<uint32_t>& versions) {
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!schema.arguments[i].alias.written || !arguments[i].is_tensor()) continue;
    const Tensor& t = arguments[i].tensor();
    if (t.impl()->keys.has(Key::kPython) && t.version() == versions[i]) t.impl()->bump_version();
  }
}

// Tensors without memory that a class gives for views are views of its argument: they share its
// version and, where the operator does not cut it off, its history.
void track_views(const Operator& op, const Stack& arguments, const Stack& results) {
  const Schema& schema = op.schema();
  if (schema.results.empty() || arguments.empty() || !arguments[0].is_tensor()) return;
  const auto& alias = schema.results[0].alias;
  if (alias.set.empty() || alias.written) return;
  const Tensor& base = arguments[0].tensor();
  const auto has_no_memory = [](const Tensor& t) {
    return t.defined() && t.impl()->keys.has(Key::kPython) && t.storage() && !t.storage()->data();
  };
  const auto track = [&](const Tensor& t, size_t output, uint32_t flags) {
    if (t.is_same(base) || !has_no_memory(t) || !has_no_memory(base) || t.impl()->view_base) return;
    t.impl()->storage = base.impl()->storage;
    if (op.record() && op.record()->has(OperatorRecord::kNoHistory)) {
      t.impl()->own_version = base.impl()->own_version;
      return;
    }
    autograd::track_view(t, base, flags);
    autograd::remember_view(t, op, arguments, output);
  };
  if (results[0].is_tensor()) track(results[0].tensor(), 0, 0);
  if (results[0].is_tensors())
    for (size_t i = 0; i < results[0].tensors().size(); i++)
      track(results[0].tensors()[i], i, autograd::kOneOfSeveral);
}

// The kernel that a program gave to the operator as which the call is shown.
bool answer_as_shown(const Operator& op, KernelKind kind, KeySet keys, Stack& stack) {
  bool answered = false;
  with_python([&] {
    const Shown seen = shown(op, stack);
    const Operator& other = to_operator(seen.op.get());
    const auto kernel = OperatorRegistry::kernels_of(other).get(kind);
    if (&other == &op || !kernel || !*kernel) return;
    Stack arguments =
        bind_arguments(other, PySequence_Fast_ITEMS(seen.call.args.get()),
                       PyTuple_GET_SIZE(seen.call.args.get()), seen.call.kwargs.get());
    (*kernel)(other, keys, arguments);
    PyRef result = wrap_results(arguments);
    if (seen.restore)
      result = PyRef::check(
          call_python([&] { return PyObject_CallOneArg(seen.restore.get(), result.get()); }));
    stack = {};
    unwrap_results(op.schema(), result.get(), "the kernel of " + other.qualified_name(), stack);
    answered = true;
  });
  return answered;
}

void handle(const Operator& op, KeySet keys, Stack& stack) {
  const Schema& schema = op.schema();
  bool handled = false;
  with_python([&] {
    std::vector<PyRef> found;
    for (const Value& value : stack) collect(value, found);
    if (found.empty() && mode_count() == 0) return;  // a tensor whose Python object has gone
    std::vector<uint32_t> versions;
    for (const Value& value : stack)
      versions.push_back(value.is_tensor() ? value.tensor().version() : 0);
    // Recording, tracing and conversions are done: they lie above.
    const ExcludeKeys above((KeySet::below(Key::kProfile) - KeySet::below(Key::kPython)) -
                            Key::kPython);
    const Shown seen = shown(op, stack);
    PyRef result = ask(seen.op.get(), found, seen.call, op);
    if (seen.restore)
      result = PyRef::check(
          call_python([&] { return PyObject_CallOneArg(seen.restore.get(), result.get()); }));
    const Stack arguments = std::move(stack);
    stack = {};
    unwrap_results(schema, result.get(), "the __torch_dispatch__ of " + op.qualified_name(), stack);
    count_writes(schema, arguments, versions);
    track_views(op, arguments, stack);
    handled = true;
  });
  if (!handled) op.redispatch(keys - KeySet(Key::kPython), stack);
}

// --- the module's functions ---

PyObject* push_mode(PyObject*, PyObject* mode) {
  if (!modes && !(modes = PyList_New(0))) return nullptr;
  if (PyList_Append(modes, mode) < 0) return nullptr;
  refresh_included();
  Py_RETURN_NONE;
}

PyObject* pop_mode(PyObject*, PyObject*) {
  const Py_ssize_t size = mode_count();
  if (size == 0) {
    PyErr_SetString(PyExc_RuntimeError, "no TorchDispatchMode is active");
    return nullptr;
  }
  PyRef mode = PyRef::share(PyList_GET_ITEM(modes, size - 1));
  if (PyList_SetSlice(modes, size - 1, size, nullptr) < 0) return nullptr;
  refresh_included();
  return mode.release();
}

PyObject* list_modes(PyObject*, PyObject*) {
  return modes ? PySequence_List(modes) : PyList_New(0);
}

// _exclude_python_key(bool) -> bool: whether __torch_dispatch__ is passed by; the state before.
PyObject* exclude_python(PyObject*, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  const bool before = thread_modes.excluded.has(Key::kPython);
  thread_modes.excluded =
      on ? thread_modes.excluded | Key::kPython : thread_modes.excluded - Key::kPython;
  return PyBool_FromLong(before);
}

// func(*args, **kwargs) without __torch_dispatch__: Tensor's own.
PyObject* disabled_torch_dispatch(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *function, *types, *call_args = nullptr, *call_kwargs = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &call_args, &call_kwargs)) return nullptr;
  const ExcludeKeys excluded((KeySet(Key::kPython)));
  const PyRef positional =
      call_args ? PyRef::check(PySequence_Tuple(call_args)) : PyRef::check(PyTuple_New(0));
  return call_python([&] {
    return PyObject_Call(function, positional.get(),
                         call_kwargs == Py_None ? nullptr : call_kwargs);
  });
  TD_PYTHON_CATCH(nullptr)
}

Key key_of(Device device) {
  switch (device.type) {
    case DeviceType::kMeta:
      return Key::kMeta;
    case DeviceType::kCUDA:
      return Key::kCUDA;
    default:
      return Key::kCPU;
  }
}

// _make_wrapper_subclass(cls, size, strides, storage_offset, dtype, device, requires_grad,
// storage_size): an instance of cls with this metadata and no memory; its storage has the length
// that the elements take where storage_size, in bytes, is negative.
PyObject* make_wrapper(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *type, *size, *strides, *dtype, *device;
  long long offset, storage_size;
  int requires_grad;
  if (!PyArg_ParseTuple(args, "OOOLOOpL:_make_wrapper_subclass", &type, &size, &strides, &offset,
                        &dtype, &device, &requires_grad, &storage_size))
    return nullptr;
  if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type))
    raise_python(PyExc_TypeError, "cls must be a type (got {})", type_name(type));
  PyTypeObject* const cls = reinterpret_cast<PyTypeObject*>(type);
  if (!has_torch_dispatch(cls))
    raise_python(PyExc_RuntimeError,
                 "{} requires a __torch_dispatch__ of its own to be made by _make_wrapper_subclass",
                 cls->tp_name);
  const DimVector sizes = to_ints(size);
  const Device where = device == Py_None ? Device() : to_device(device);
  const DType kind = dtype == Py_None ? default_dtype() : to_dtype(dtype);
  const Tensor t = strides == Py_None
                       ? empty_tensor(sizes, kind, DeviceType::kMeta)
                       : empty_strided_tensor(sizes, to_ints(strides), kind, DeviceType::kMeta);
  TensorImpl& impl = *t.impl();
  impl.offset = offset;
  if (storage_size >= 0 || offset != 0)
    impl.storage->resize(storage_size >= 0
                             ? storage_size
                             : storage_bytes_needed(t.sizes(), t.strides(), offset, kind));
  impl.device = where;
  impl.keys = (impl.keys - Key::kMeta) | key_of(where) | Key::kPython;
  if (requires_grad) Tensor(t).requires_grad_(true);
  return wrap_as(cls, t);
  TD_PYTHON_CATCH(nullptr)
}

// Whether x is a tensor whose class has a __torch_dispatch__ of its own.
PyObject* dispatches(PyObject*, PyObject* x) {
  return PyBool_FromLong(is_tensor(x) && !is_plain_tensor(x) && has_torch_dispatch(Py_TYPE(x)));
}

PyMethodDef functions[] = {
    {"_has_torch_dispatch", dispatches, METH_O, nullptr},
    {"_push_on_torch_dispatch_stack", push_mode, METH_O, nullptr},
    {"_pop_torch_dispatch_stack", pop_mode, METH_NOARGS, nullptr},
    {"_torch_dispatch_stack", list_modes, METH_NOARGS, nullptr},
    {"_exclude_python_key", exclude_python, METH_O, nullptr},
    {"_disabled_torch_dispatch_impl", disabled_torch_dispatch, METH_VARARGS, nullptr},
    {"_make_wrapper_subclass", make_wrapper, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool has_torch_dispatch(PyTypeObject* type) {
  PyObject* implementation = _PyType_Lookup(type, torch_dispatch_name);
  return implementation && implementation != disabled_implementation;
}

PyRef torch_dispatch_modes() { return modes ? PyRef::check(PySequence_List(modes)) : PyRef(); }

void set_torch_dispatch_modes(PyObject* list) {
  PyRef copy = list ? PyRef::check(PySequence_List(list)) : PyRef();
  Py_XDECREF(std::exchange(modes, copy.release()));
  refresh_included();
}

void add_torch_dispatch(PyObject* module) {
  torch_dispatch_name = interned("__torch_dispatch__");
  sees_table_name = interned("_sees_table");
  check_status(PyModule_AddFunctions(module, functions));
  rules = PyRef::check(PyDict_New()).release();
  check_status(PyModule_AddObjectRef(module, "_torch_dispatch_rules", rules));
  disabled_implementation = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
  check_status(PyDict_SetItem(tensor_type->tp_dict, torch_dispatch_name, disabled_implementation));
  PyType_Modified(tensor_type);
  dispatch::set_handler(Key::kPython, handle);
  overrides::set_answer_as_shown(answer_as_shown);
  autograd::is_held_in_python = [](const Tensor& t) {
    const GilAcquire gil;
    return Py_REFCNT(static_cast<PyObject*>(t.impl()->python_object())) > 1;  // but for t's own
  };
}

}  // namespace taeda::python
