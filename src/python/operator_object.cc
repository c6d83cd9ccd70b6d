#include "python/operator_object.h"

#include <structmember.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "ops/boxing.h"
#include "ops/modes.h"
#include "ops/operator.h"
#include "ops/overloads.h"
#include "ops/overrides.h"
#include "python/boxed.h"
#include "python/call.h"
#include "python/dispatch_keys.h"
#include "python/module.h"
#include "python/torch_function.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

struct OperatorObject {
  PyObject_HEAD const Operator* op;
  PyObject* dict;
};

PyTypeObject* base_type = nullptr;
PyTypeObject* overload_type = nullptr;  // taeda._ops.OpOverload, once that module is loaded

OperatorObject* cast(PyObject* object) { return reinterpret_cast<OperatorObject*>(object); }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->dict);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(cast(self)->dict);
  return 0;
}
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int64_t elements(const Stack& stack) {
  int64_t most = 0;
  for (const Value& value : stack)
    if (value.is_tensor()) most = std::max(most, value.tensor().numel());
  return most;
}

// Lets other threads run while the operator works on large tensors.
template <class Call>
PyObject* run(Stack& stack, const Call& call) {
  unlocked_if(elements(stack) >= kLargeElements, [&] { call(stack); });
  return wrap_results(stack).release();
}

// Whether an argument, or an item of it, is no Tensor and has a __torch_function__: what stands for
// a tensor in traces.
bool stands_for_tensor(PyObject* value) {
  if (!PyTuple_Check(value) && !PyList_Check(value))
    return !is_tensor(value) && overrides_torch_function(value);
  PyObject* const* items = PySequence_Fast_ITEMS(value);
  return std::any_of(items, items + PySequence_Fast_GET_SIZE(value), [](PyObject* item) {
    return !is_tensor(item) && overrides_torch_function(item);
  });
}

// A call in the form of vectorcall: the positional arguments, those by keyword, their names.
struct FlatCall {
  std::vector<PyObject*> values;
  PyRef names;

  FlatCall(PyObject* args, PyObject* kwargs) {
    PyObject* const* items = PySequence_Fast_ITEMS(args);
    values.assign(items, items + PyTuple_GET_SIZE(args));
    if (!kwargs) return;
    names = PyRef::check(PySequence_Tuple(kwargs));
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &name, &value);) values.push_back(value);
  }
};

bool any_stands_for_tensor(PyObject* args, PyObject* kwargs) {
  PyObject* const* items = PySequence_Fast_ITEMS(args);
  if (std::any_of(items, items + PyTuple_GET_SIZE(args), stands_for_tensor)) return true;
  PyObject *name, *value;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &name, &value);)
    if (stands_for_tensor(value)) return true;
  return false;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  const Py_ssize_t size = PyTuple_GET_SIZE(args);
  if (any_stands_for_tensor(args, kwargs)) [[unlikely]] {
    const FlatCall flat(args, kwargs);
    return call_torch_function(self, flat.values.data(), size, flat.names.get());
  }
  const Operator& op = *cast(self)->op;
  Stack stack = bind_arguments(op, PySequence_Fast_ITEMS(args), size, kwargs);
  return run(stack, [&](Stack& s) { op.call(s); });
  TD_PYTHON_CATCH(nullptr)
}

// _redispatch_below(key, args, kwargs): the call without what lies from `key` upwards. What it
// calls in turn reaches the modes again below "Python", and nothing of the layer below the others.
PyObject* redispatch_below(PyObject* self, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *given, *kwargs;
  const char* key;
  if (!PyArg_ParseTuple(args, "sO!O!:_redispatch_below", &key, &PyTuple_Type, &given, &PyDict_Type,
                        &kwargs))
    return nullptr;
  struct Layer {
    Key key;
    KeySet excluded;
  };
  static const std::map<std::string_view, Layer> layers{
      {"Autograd", {Key::kAutograd, kDifferentiationKeys}},
      {"Autocast", {Key::kAutocast, KeySet(Key::kAutocast)}},
      {"Python", {Key::kPython, {}}}};
  const auto layer = layers.find(key);
  if (layer == layers.end())
    raise_python(PyExc_ValueError, "_redispatch_below(): no layer is called '{}'", key);
  const Operator& op = *cast(self)->op;
  Stack stack = bind_arguments(op, PySequence_Fast_ITEMS(given), PyTuple_GET_SIZE(given), kwargs);
  const ExcludeKeys excluded(layer->second.excluded);
  const KeySet keys = op.keys_of(stack) & KeySet::below(layer->second.key);
  return run(stack, [&](Stack& s) { op.redispatch(keys, s); });
  TD_PYTHON_CATCH(nullptr)
}

// _redispatch(bits, args, kwargs): the call goes on with these keys.
PyObject* redispatch(PyObject* self, PyObject* args) {
  TD_PYTHON_TRY
  long bits;
  PyObject *given, *kwargs;
  if (!PyArg_ParseTuple(args, "lO!O!:_redispatch", &bits, &PyTuple_Type, &given, &PyDict_Type,
                        &kwargs))
    return nullptr;
  const Operator& op = *cast(self)->op;
  Stack stack = bind_arguments(op, PySequence_Fast_ITEMS(given), PyTuple_GET_SIZE(given), kwargs);
  return run(stack, [&](Stack& s) { overrides::redispatch(op, keys_from_bits(bits), s); });
  TD_PYTHON_CATCH(nullptr)
}

PyObject* arguments_of(const std::vector<SchemaArgument>& arguments) {
  PyRef list = PyRef::check(PyList_New(0));
  for (const SchemaArgument& a : arguments) {
    const PyRef value = PyRef::check(wrap(a.default_value));
    const std::string type = a.type.text();
    const PyRef row = PyRef::check(
        Py_BuildValue("(ssOOOsO)", a.name.c_str(), type.c_str(), a.has_default ? Py_True : Py_False,
                      value.get(), a.keyword_only ? Py_True : Py_False, a.alias.set.c_str(),
                      a.alias.written ? Py_True : Py_False));
    check_status(PyList_Append(list.get(), row.get()));
  }
  return list.release();
}

PyObject* get_name(PyObject* self, void*) { return wrap(cast(self)->op->schema().name); }
PyObject* get_overload(PyObject* self, void*) { return wrap(cast(self)->op->schema().overload); }
PyObject* get_text(PyObject* self, void*) {
  TD_PYTHON_TRY
  return wrap(cast(self)->op->schema().text());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* get_arguments(PyObject* self, void*) {
  TD_PYTHON_TRY
  return arguments_of(cast(self)->op->schema().arguments);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* get_results(PyObject* self, void*) {
  TD_PYTHON_TRY
  return arguments_of(cast(self)->op->schema().results);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* get_dispatched(PyObject* self, void*) {
  return PyBool_FromLong(cast(self)->op->is_dispatched());
}
PyObject* get_registered(PyObject* self, void*) {
  return PyBool_FromLong(!cast(self)->op->record());
}

PyObject* get_pointwise(PyObject* self, void*) {
  const OperatorRecord* record = cast(self)->op->record();
  return PyBool_FromLong(record && record->has(OperatorRecord::kElementwise));
}

PyObject* get_tags(PyObject* self, void*) {
  return wrap(overloads::tags_of(cast(self)->op->record()));
}

PyMethodDef methods[] = {
    {"_redispatch_below", redispatch_below, METH_VARARGS, nullptr},
    {"_redispatch", redispatch, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"_operator_name", get_name, nullptr, nullptr, nullptr},
    {"_overload", get_overload, nullptr, nullptr, nullptr},
    {"_schema_text", get_text, nullptr, nullptr, nullptr},
    {"_arguments", get_arguments, nullptr, nullptr, nullptr},
    {"_results", get_results, nullptr, nullptr, nullptr},
    {"_is_dispatched", get_dispatched, nullptr, nullptr, nullptr},
    {"_is_registered", get_registered, nullptr, nullptr, nullptr},
    {"_is_pointwise", get_pointwise, nullptr, nullptr, nullptr},
    {"_table_tags", get_tags, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject* new_object(const Operator& op) {
  if (!overload_type) {  // the module registers its class
    PyRef::check(PyImport_ImportModule("taeda._ops"));
    if (!overload_type) raise_python(PyExc_RuntimeError, "taeda._ops has no class of operators");
  }
  PyObject* self = overload_type->tp_alloc(overload_type, 0);
  if (!self) throw PythonError();
  cast(self)->op = &op;
  const PyRef owner = PyRef::check(self);
  const std::string_view space = op.name().substr(0, op.name().find("::"));
  const auto set = [self](const char* name, const std::string& text) {
    check_status(PyObject_SetAttrString(self, name, PyRef::check(wrap(text)).get()));
  };
  set("__module__", format("torch._ops.{}", space));
  set("__qualname__", op.qualified_name());
  return new_ref(self);
}

PyObject* object_or_none(const Operator* op) {
  return op ? new_ref(operator_object(*op)) : new_ref(Py_None);
}

// _operator(name, overload) -> OpOverload or None
PyObject* find(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  const char *name, *overload;
  if (!PyArg_ParseTuple(args, "ss:_operator", &name, &overload)) return nullptr;
  return object_or_none(find_operator(name, overload));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* list_of(const std::vector<const Operator*>& operators) {
  PyRef list = PyRef::check(PyList_New(0));
  for (const Operator* op : operators)
    check_status(PyList_Append(list.get(), operator_object(*op)));
  return list.release();
}

// _operators(name) -> the overloads of that name; of all names for None
PyObject* find_all(PyObject*, PyObject* name) {
  TD_PYTHON_TRY
  if (name == Py_None) return list_of(all_operators());
  if (!PyUnicode_Check(name)) raise_python(PyExc_TypeError, "_operators() expects a str");
  return list_of(find_overloads(utf8(name)));
  TD_PYTHON_CATCH(nullptr)
}

// _spellings() -> [(operator, the call of PyTorch's as which it is shown)]
PyObject* spellings(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  PyRef list = PyRef::check(PyList_New(0));
  for (size_t i = 0; i < kNumSpellings; i++) {
    const Operator& op = kSpellings[i].record->form(Operator::Form::kPlain);
    const PyRef row = PyRef::check(Py_BuildValue("(Os)", operator_object(op), kSpellings[i].text));
    check_status(PyList_Append(list.get(), row.get()));
  }
  return list.release();
  TD_PYTHON_CATCH(nullptr)
}

// _factories() -> the names of the table's operators that make tensors from no tensor, on a device
PyObject* factories(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  PyRef names = PyRef::check(PyList_New(0));
  for (size_t i = 0; i < kNumOperatorRecords; i++) {
    const std::string_view letters = boxing::letters(*kOperatorRecords[i]);
    if (letters.find('o') == letters.npos || letters.find_first_of("TLl") != letters.npos) continue;
    const std::string_view name = kOperatorRecords[i]->name();
    const PyRef text = PyRef::check(wrap(name.substr(name.find("::") + 2)));
    check_status(PyList_Append(names.get(), text.get()));
  }
  return names.release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* set_overload_type(PyObject*, PyObject* type) {
  if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), base_type)) {
    PyErr_SetString(PyExc_TypeError, "_set_overload_type() expects a subclass of _OperatorBase");
    return nullptr;
  }
  overload_type = reinterpret_cast<PyTypeObject*>(new_ref(type));
  Py_RETURN_NONE;
}

// _check_arguments(op, args, kwargs): RuntimeError where the call does not fit the schema.
PyObject* check_arguments(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *op, *given, *kwargs;
  if (!PyArg_ParseTuple(args, "OO!O!:_check_arguments", &op, &PyTuple_Type, &given, &PyDict_Type,
                        &kwargs))
    return nullptr;
  bind_arguments(to_operator(op), PySequence_Fast_ITEMS(given), PyTuple_GET_SIZE(given), kwargs);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// _stands_for_tensor(args, kwargs): whether an argument is no Tensor and has a __torch_function__.
PyObject* find_stand_in(PyObject*, PyObject* call) {
  PyObject *given, *kwargs;
  if (!PyArg_ParseTuple(call, "O!O!:_stands_for_tensor", &PyTuple_Type, &given, &PyDict_Type,
                        &kwargs))
    return nullptr;
  return PyBool_FromLong(any_stands_for_tensor(given, kwargs));
}

// _parse_schema(text) -> (name, overload, arguments, results, canonical text)
PyObject* parse(PyObject*, PyObject* text) {
  TD_PYTHON_TRY
  if (!PyUnicode_Check(text)) raise_python(PyExc_TypeError, "_parse_schema() expects a str");
  const Schema schema = parse_schema(utf8(text));
  const PyRef arguments = PyRef::check(arguments_of(schema.arguments)),
              results = PyRef::check(arguments_of(schema.results));
  return Py_BuildValue("(ssOOs)", schema.name.c_str(), schema.overload.c_str(), arguments.get(),
                       results.get(), schema.text().c_str());
  TD_PYTHON_CATCH(nullptr)
}

// A function of taeda._ops under the name that PyTorch's _C has for it.
template <const char* const& name>
PyObject* in_python(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  const PyRef module = PyRef::check(PyImport_ImportModule("taeda._ops"));
  const PyRef function = PyRef::check(PyObject_GetAttrString(module.get(), name));
  return call_python([&] { return PyObject_CallObject(function.get(), args); });
  TD_PYTHON_CATCH(nullptr)
}
constexpr const char* kAllSchemas = "all_schemas";
constexpr const char* kSchemasFor = "schemas_for";
constexpr const char* kSchemaOf = "schema_of";

PyObject* load_library(PyObject*, PyObject* path) {
  TD_PYTHON_TRY
  PyObject* encoded = nullptr;
  if (!PyUnicode_FSConverter(path, &encoded)) return nullptr;
  const PyRef owner = PyRef::check(encoded);
  taeda::load_library(PyBytes_AS_STRING(encoded));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* pointwise_functions(PyObject*, PyObject*) {
  return PyUnicode_FromString(kPointwiseFunctions);
}

PyMethodDef functions[] = {
    {"_jit_get_all_schemas", in_python<kAllSchemas>, METH_VARARGS, nullptr},
    {"_jit_get_schemas_for_operator", in_python<kSchemasFor>, METH_VARARGS, nullptr},
    {"_get_schema", in_python<kSchemaOf>, METH_VARARGS, nullptr},
    {"_operator", find, METH_VARARGS, nullptr},
    {"_operators", find_all, METH_O, nullptr},
    {"_load_library", load_library, METH_O, nullptr},
    {"_pointwise_functions", pointwise_functions, METH_NOARGS, nullptr},
    {"_spellings", spellings, METH_NOARGS, nullptr},
    {"_factories", factories, METH_NOARGS, nullptr},
    {"_check_arguments", check_arguments, METH_VARARGS, nullptr},
    {"_stands_for_tensor", find_stand_in, METH_VARARGS, nullptr},
    {"_parse_schema", parse, METH_O, nullptr},
    {"_set_overload_type", set_overload_type, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* operator_object(const Operator& op) {
  static auto& objects = *new std::unordered_map<const Operator*, PyObject*>;
  const auto found = objects.find(&op);
  if (found != objects.end()) return found->second;
  PyObject* made = new_object(op);  // may run Python code
  return objects.emplace(&op, made).first->second;
}

const Operator& to_operator(PyObject* object) {
  if (!PyObject_TypeCheck(object, base_type) || !cast(object)->op)
    raise_python(PyExc_TypeError, "expected an operator of torch.ops, but got {}",
                 type_name(object));
  return *cast(object)->op;
}

void add_operators(PyObject* module) {
  static PyMemberDef members[] = {
      {"__dictoffset__", T_PYSSIZET, offsetof(OperatorObject, dict), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_call, reinterpret_cast<void*>(call)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {Py_tp_members, members},
      {0, nullptr},
  };
  PyType_Spec spec = {"taeda._C._OperatorBase", sizeof(OperatorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  base_type = add_type(module, "_OperatorBase", &spec);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
