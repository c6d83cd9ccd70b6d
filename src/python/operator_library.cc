// taeda._C._Library: what torch.library.Library registers through. Kernels are Python callables.
#include "ops/operator.h"
#include "ops/overrides.h"
#include "python/autograd_support.h"
#include "python/boxed.h"
#include "python/call.h"
#include "python/dispatch_keys.h"
#include "python/module.h"
#include "python/operator_object.h"

namespace taeda::python {
namespace {

struct LibraryObject {
  PyObject_HEAD Library* library;
};

LibraryObject* cast(PyObject* object) { return reinterpret_cast<LibraryObject*>(object); }

struct KindName {
  const char* name;
  KernelKind kind;
  KeySet devices = kDeviceKeys;
};
constexpr KindName kKinds[] = {
    {"CPU", KernelKind::kCPU},
    {"Meta", KernelKind::kMeta},
    {"CUDA", KernelKind::kCUDA},
    {"Python", KernelKind::kPython},
    {"Functionalize", KernelKind::kFunctionalize},
    {"Autograd", KernelKind::kAutograd},
    {"AutogradCPU", KernelKind::kAutograd, Key::kCPU},
    {"AutogradCUDA", KernelKind::kAutograd, Key::kCUDA},
    {"AutogradMeta", KernelKind::kAutograd, Key::kMeta},
    {"Tracer", KernelKind::kTrace},
    {"AutocastCPU", KernelKind::kAutocast},
    {"FuncTorchBatched", KernelKind::kBatched},
    {"CompositeImplicitAutograd", KernelKind::kComposite},
    {"CompositeExplicitAutograd", KernelKind::kCompositeExplicit},
};

const KindName& kind_named(const char* name) {
  for (const KindName& known : kKinds)
    if (std::string_view(known.name) == name) return known;
  raise_python(PyExc_RuntimeError, "could not parse dispatch key: {}", name);
}

// What a kernel is given in front of the operator's arguments.
enum class Front { kNothing = 0, kKeys = 1, kOperator = 2 };
constexpr bool has(Front all, Front one) { return static_cast<int>(all) & static_cast<int>(one); }
Front front(bool keys, bool op) { return static_cast<Front>((keys ? 1 : 0) | (op ? 2 : 0)); }

// A Python function as a kernel. Copies share it.
class PythonKernel {
 public:
  explicit PythonKernel(PyObject* function, Front in_front = Front::kNothing)
      : function_(make_ref<PythonHolder>(function)), front_(in_front) {}
  void operator()(const Operator& op, KeySet keys, Stack& stack) const {
    with_python([&] {
      const PythonCall call = python_call(op.schema(), stack);
      const PyRef args = with_front(op, keys, call.args);
      const PyRef result = PyRef::check(call_python(
          [&] { return PyObject_Call(function_->get(), args.get(), call.kwargs.get()); }));
      unwrap_results(op.schema(), result.get(), "the kernel of " + op.qualified_name(), stack);
    });
  }

 private:
  PyRef with_front(const Operator& op, KeySet keys, const PyRef& args) const {
    if (front_ == Front::kNothing) return PyRef::share(args.get());
    const PyRef first = PyRef::check(PyList_New(0));
    if (has(front_, Front::kKeys))
      check_status(PyList_Append(first.get(), keyset_object(keys).get()));
    if (has(front_, Front::kOperator))
      check_status(PyList_Append(first.get(), operator_object(op)));
    const PyRef tuple = PyRef::check(PyList_AsTuple(first.get()));
    return PyRef::check(PySequence_Concat(tuple.get(), args.get()));
  }

  Ref<PythonHolder> function_;
  Front front_;
};

// _define_composite(schema, function, recorded=None) -> OpOverload: an operator that stays, in any
// namespace. With `recorded`, which autograd calls in its place, modes see it as one call.
PyObject* define_composite(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  const char* schema;
  PyObject *function, *recorded = nullptr;
  if (!PyArg_ParseTuple(args, "sO|O:_define_composite", &schema, &function, &recorded))
    return nullptr;
  Operator& op = OperatorRegistry::get().define(parse_schema(schema));
  const auto set = [&op](KernelKind kind, PyObject* kernel) {
    OperatorRegistry::set_kernel(op, kind,
                                 std::make_shared<const BoxedKernel>(PythonKernel(kernel)));
  };
  set(recorded ? KernelKind::kCompositeExplicit : KernelKind::kComposite, function);
  if (recorded) set(KernelKind::kAutograd, recorded);
  return new_ref(operator_object(op));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* library_new(PyTypeObject* type, PyObject* args, PyObject*) {
  TD_PYTHON_TRY
  const char* name;
  if (!PyArg_ParseTuple(args, "s:_Library", &name)) return nullptr;
  PyRef self = PyRef::check(type->tp_alloc(type, 0));
  cast(self.get())->library = new Library(name);
  return self.release();
  TD_PYTHON_CATCH(nullptr)
}

void library_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete cast(self)->library;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* define(PyObject* self, PyObject* text) {
  TD_PYTHON_TRY
  if (!PyUnicode_Check(text)) raise_python(PyExc_TypeError, "define() expects a str");
  return PyUnicode_FromString(cast(self)->library->define(utf8(text)).c_str());
  TD_PYTHON_CATCH(nullptr)
}

// impl(name, key, function, with_keys, where_recorded)
PyObject* implement(PyObject* self, PyObject* args) {
  TD_PYTHON_TRY
  const char *name, *kind;
  PyObject* function;
  int with_keys = 0, where_recorded = 0;
  if (!PyArg_ParseTuple(args, "ssO|pp:impl", &name, &kind, &function, &with_keys, &where_recorded))
    return nullptr;
  if (!PyCallable_Check(function))
    raise_python(PyExc_TypeError, "a kernel must be callable, but got {}", type_name(function));
  const KindName& known = kind_named(kind);
  BoxedKernel kernel = PythonKernel(function, front(with_keys, false));
  if (known.devices != kDeviceKeys || where_recorded)
    kernel = LimitedKernel{std::move(kernel), known.devices, where_recorded != 0};
  cast(self)->library->implement(name, known.kind, std::move(kernel));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* fall_through(PyObject* self, PyObject* args) {
  TD_PYTHON_TRY
  const char *name, *kind;
  if (!PyArg_ParseTuple(args, "ss:fallthrough", &name, &kind)) return nullptr;
  cast(self)->library->fall_through(name, kind_named(kind).kind);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// Takes everything back before the object goes.
PyObject* destroy(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  delete std::exchange(cast(self)->library, new Library("destroyed"));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef methods[] = {
    {"define", define, METH_O, nullptr},
    {"impl", implement, METH_VARARGS, nullptr},
    {"fallthrough", fall_through, METH_VARARGS, nullptr},
    {"destroy", destroy, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// _watch_shown(op, key, names, on): whether a kernel of `op` answers calls of these operators of
// the table that are shown as calls of `op`
PyObject* watch_shown(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *op, *names;
  const char* kind;
  int on;
  if (!PyArg_ParseTuple(args, "OsO!p:_watch_shown", &op, &kind, &PyList_Type, &names, &on))
    return nullptr;
  std::vector<const OperatorRecord*> records;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++) {
    const std::string_view name = utf8(PyList_GET_ITEM(names, i));
    const size_t dot = std::min(name.find('.'), name.size());
    const Operator* const found =
        find_operator(name.substr(0, dot), name.substr(std::min(dot + 1, name.size())));
    if (found && found->record()) records.push_back(found->record());
  }
  overrides::watch(to_operator(op), kind_named(kind).kind, {records.data(), records.size()}, on);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// _set_key_fallback(key, function, with_keys): `function` is given the operator first; None passes
// the key by, and without a function there is no fallback any more.
PyObject* set_fallback(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  const char* name;
  PyObject* function = nullptr;
  int with_keys = 0;
  if (!PyArg_ParseTuple(args, "s|Op:_set_key_fallback", &name, &function, &with_keys))
    return nullptr;
  BoxedKernel kernel;
  if (function && function != Py_None) kernel = PythonKernel(function, front(with_keys, true));
  OperatorRegistry::get().set_fallback(
      kind_named(name).kind,
      function ? std::make_shared<const BoxedKernel>(std::move(kernel)) : nullptr);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// _has_kernel(op, key) -> bool
PyObject* has_kernel(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* op;
  const char* name;
  if (!PyArg_ParseTuple(args, "Os:_has_kernel", &op, &name)) return nullptr;
  return PyBool_FromLong(to_operator(op).has_kernel_for(kind_named(name).kind));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_has_kernel", has_kernel, METH_VARARGS, nullptr},
    {"_set_key_fallback", set_fallback, METH_VARARGS, nullptr},
    {"_watch_shown", watch_shown, METH_VARARGS, nullptr},
    {"_define_composite", define_composite, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_library(PyObject* module) {
  add_dispatch_keys(module);
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(library_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(library_dealloc)},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"taeda._C._Library", sizeof(LibraryObject), 0, Py_TPFLAGS_DEFAULT, slots};
  add_type(module, "_Library", &spec);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
