#include "python/boxed.h"

#include "core/host_copy.h"
#include "ops/overloads.h"
#include "python/arguments.h"
#include "python/call.h"
#include "python/objects.h"
#include "python/tensor_object.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

bool is_list(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

// Every element through `convert`, which says whether it could.
template <class Convert>
bool each(PyObject* sequence, const Convert& convert) {
  const PyRef copy = PyRef::check(PySequence_Tuple(sequence));  // conversions may run Python code
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(copy.get()); i++)
    if (!convert(PyTuple_GET_ITEM(copy.get(), i))) return false;
  return true;
}

// Whether an object is an integer of 64 bits.
bool is_int(PyObject* object) {
  if (!can_be_int(object)) return PyBool_Check(object);
  int overflow = 0;
  if (PyLong_Check(object)) PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

// A dtype, or PyTorch's number of one.
std::optional<Value> dtype_value(PyObject* object) {
  constexpr DType kNumbered[] = {DType::kUInt8,     DType::kInt8,       DType::kInt16,
                                 DType::kInt32,     DType::kInt64,      DType::kFloat16,
                                 DType::kFloat32,   DType::kFloat64,    DType::kComplex32,
                                 DType::kComplex64, DType::kComplex128, DType::kBool};
  constexpr int64_t kNumberOfBFloat16 = 15;
  if (can_be_dtype(object)) return Value(to_dtype(object));
  if (!PyLong_CheckExact(object) || !is_int(object)) return std::nullopt;
  const int64_t number = to_int(object);
  if (number == kNumberOfBFloat16) return Value(DType::kBFloat16);
  if (number < 0 || number >= static_cast<int64_t>(std::size(kNumbered))) return std::nullopt;
  return Value(kNumbered[number]);
}

// The elements as numbers, where all of them are some.
template <class List, class Fits, class Convert>
std::optional<Value> numbers(PyObject* sequence, const Fits& fits, const Convert& convert) {
  List list;
  const bool all = each(sequence, [&](PyObject* item) {
    if (!fits(item)) return false;
    list.push_back(convert(item));
    return true;
  });
  return all ? std::optional<Value>(std::move(list)) : std::nullopt;
}

std::optional<Value> list_value(PyObject* object, const SchemaType& type) {
  if (!is_list(object)) {  // one for all
    if (type.size == 0 || type.base == ValueType::kTensor) return std::nullopt;
    const PyRef one = PyRef::check(PyTuple_Pack(1, object));
    std::optional<Value> list = list_value(one.get(), type);
    const auto count = static_cast<size_t>(type.size);
    if (list && list->holds<Value::Ints>()) return Value::Ints(count, list->ints()[0]);
    if (list && list->holds<Value::Floats>()) return Value::Floats(count, list->floats()[0]);
    return std::nullopt;
  }
  switch (type.base) {
    case ValueType::kTensor: {
      TensorList tensors;
      const bool all = each(object, [&](PyObject* item) {
        if (item == Py_None && type.optional_elements) {
          tensors.emplace_back();
          return true;
        }
        if (!is_tensor(item)) return false;
        tensors.push_back(tensor_of(item));
        return true;
      });
      return all ? std::optional<Value>(std::move(tensors)) : std::nullopt;
    }
    case ValueType::kInt:
      return numbers<Value::Ints>(object, is_int, to_int);
    case ValueType::kFloat:
      return numbers<Value::Floats>(object, can_be_float, to_float);
    case ValueType::kBool:
      return numbers<Value::Bools>(
          object, [](PyObject* item) { return PyBool_Check(item) != 0; },
          [](PyObject* item) { return item == Py_True; });
    case ValueType::kScalar:
      for (const ValueType kind : {ValueType::kBool, ValueType::kInt, ValueType::kFloat})
        if (auto value = list_value(object, SchemaType{.base = kind, .list = true})) return value;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Value number_value(PyObject* object) { return Value(to_scalar(object)); }

template <class T>
std::optional<Value> maybe(bool fits, T&& value) {
  return fits ? std::optional<Value>(value()) : std::nullopt;
}

struct Wrap {
  PyObject* operator()(std::monostate) const { Py_RETURN_NONE; }
  PyObject* operator()(const Tensor& t) const {
    if (is_written_number(t)) return python::wrap(t.item_scalar());
    return python::wrap(t);
  }
  PyObject* operator()(const TensorList& tensors) const {
    return list(tensors.size(), [&](size_t i) { return python::wrap(tensors[i]); });
  }
  PyObject* operator()(bool value) const { return python::wrap(value); }
  PyObject* operator()(int64_t value) const { return python::wrap(value); }
  PyObject* operator()(double value) const { return python::wrap(value); }
  PyObject* operator()(std::complex<double> value) const {
    return PyComplex_FromDoubles(value.real(), value.imag());
  }
  PyObject* operator()(const std::string& text) const { return python::wrap(text); }
  PyObject* operator()(const Value::Ints& values) const {
    return list(values.size(), [&](size_t i) { return python::wrap(values[i]); });
  }
  PyObject* operator()(const Value::Floats& values) const {
    return list(values.size(), [&](size_t i) { return python::wrap(values[i]); });
  }
  PyObject* operator()(const Value::Bools& values) const {
    return list(values.size(), [&](size_t i) { return PyBool_FromLong(values[i]); });
  }
  PyObject* operator()(DType value) const { return python::wrap(value); }
  PyObject* operator()(Layout value) const { return python::wrap(value); }
  PyObject* operator()(Device value) const { return python::wrap(value); }
  PyObject* operator()(MemoryFormat value) const { return python::wrap(value); }
  PyObject* operator()(Generator* generator) const {
    PyObject* object = generator_type->tp_alloc(generator_type, 0);
    if (!object) throw PythonError();
    reinterpret_cast<GeneratorObject*>(object)->generator = generator;
    return object;  // not owned: it belongs to who made the call
  }

 private:
  template <class Item>
  static PyObject* list(size_t size, const Item& item) {
    PyRef made = PyRef::check(PyList_New(static_cast<Py_ssize_t>(size)));
    for (size_t i = 0; i < size; i++)
      PyList_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), PyRef::check(item(i)).release());
    return made.release();
  }
};

[[noreturn]] void fail_type(const Schema& schema, const SchemaArgument& argument,
                            PyObject* object) {
  const std::string type = argument.type.text();
  const bool optional = argument.type.optional;
  raise_python(PyExc_RuntimeError,
               "{}() Expected a value of type '{}' for argument '{}' but instead found type "
               "'{}'.\nDeclaration: {}",
               schema.name, optional ? "Optional[" + type.substr(0, type.size() - 1) + "]" : type,
               argument.name, type_name(object), schema.text());
}

}  // namespace

std::optional<Value> to_value(PyObject* object, const SchemaType& type) {
  if (object == Py_None) {
    const bool fits = type.optional || type.base == ValueType::kGenerator;
    return fits ? std::optional<Value>(Value()) : std::nullopt;
  }
  if (type.list) return list_value(object, type);
  switch (type.base) {
    case ValueType::kTensor:
      if (is_tensor(object)) return Value(tensor_of(object));
      return maybe(can_be_scalar(object), [&] { return Value(Tensor(to_scalar(object))); });
    case ValueType::kScalar:
      return maybe(can_be_scalar(object), [&] { return number_value(object); });
    case ValueType::kInt:
      return maybe(is_int(object), [&] { return Value(to_int(object)); });
    case ValueType::kFloat:
      return maybe(can_be_float(object), [&] { return Value(to_float(object)); });
    case ValueType::kBool:
      return maybe(PyBool_Check(object), [&] { return Value(object == Py_True); });
    case ValueType::kString:
      return maybe(PyUnicode_Check(object), [&] { return Value(utf8(object)); });
    case ValueType::kDType:
      return dtype_value(object);
    case ValueType::kDevice:
      return maybe(can_be_device(object), [&] { return Value(to_device(object)); });
    case ValueType::kMemoryFormat:
      return maybe(is_memory_format(object),
                   [&] { return Value(reinterpret_cast<MemoryFormatObject*>(object)->value); });
    case ValueType::kLayout:
      return maybe(object == strided_layout, [&] { return Value(Layout::kStrided); });
    case ValueType::kGenerator:
      return maybe(is_generator(object),
                   [&] { return Value(reinterpret_cast<GeneratorObject*>(object)->generator); });
  }
  return std::nullopt;
}

PyObject* wrap(const Value& value) { return std::visit(Wrap(), value.data()); }

Stack bind_arguments(const Operator& op, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwargs) {
  const Schema& schema = op.schema();
  const size_t given = static_cast<size_t>(nargs);
  size_t positional = 0;
  while (positional < schema.arguments.size() && !schema.arguments[positional].keyword_only)
    positional++;
  if (given > positional)
    raise_python(
        PyExc_RuntimeError,
        "{}() expected at most {} argument(s) but received {} argument(s). Declaration: {}",
        schema.name, positional, given, schema.text());
  Py_ssize_t taken = 0;
  Stack stack;
  stack.reserve(schema.arguments.size());
  for (size_t i = 0; i < schema.arguments.size(); i++) {
    const SchemaArgument& argument = schema.arguments[i];
    PyObject* object = i < given ? args[i] : nullptr;
    PyObject* by_name = kwargs ? PyDict_GetItemString(kwargs, argument.name.c_str()) : nullptr;
    if (by_name && object)
      raise_python(PyExc_RuntimeError, "{}() got multiple values for argument '{}'. Schema: {}",
                   schema.name, argument.name, schema.text());
    if (by_name) {
      object = by_name;
      taken++;
    }
    if (object) {
      std::optional<Value> value = to_value(object, argument.type);
      // A number is no tensor to the kernels of a program's own operators, and none to view.
      const bool number = value && value->is_tensor() && !is_tensor(object);
      const bool refused =
          number && (!op.record() || op.record()->inverse != OperatorRecord::Inverse::kNone);
      if (!value || refused) fail_type(schema, argument, object);
      stack.push_back(*std::move(value));
    } else if (argument.has_default) {
      stack.push_back(argument.default_value);
    } else {
      raise_python(PyExc_RuntimeError, "{}() is missing value for argument '{}'. Declaration: {}",
                   schema.name, argument.name, schema.text());
    }
  }
  if (kwargs && taken != PyDict_GET_SIZE(kwargs)) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(kwargs, &at, &key, &value))
      if (!PyUnicode_Check(key) || schema.find(utf8(key)) < 0)
        raise_python(PyExc_RuntimeError,
                     "Unknown keyword argument '{}' for operator '{}'. Schema: {}",
                     PyUnicode_Check(key) ? utf8(key) : type_name(key), schema.name, schema.text());
  }
  return stack;
}

PythonCall python_call(const Schema& schema, const Stack& stack) {
  size_t positional = 0;
  while (positional < stack.size() && !schema.arguments[positional].keyword_only) positional++;
  size_t shown = positional;
  while (shown > 0 && overloads::is_default(schema.arguments[shown - 1], stack[shown - 1])) shown--;
  PythonCall call{PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(shown))),
                  PyRef::check(PyDict_New())};
  for (size_t i = 0; i < shown; i++)
    PyTuple_SET_ITEM(call.args.get(), static_cast<Py_ssize_t>(i),
                     PyRef::check(wrap(stack[i])).release());
  for (size_t i = positional; i < stack.size(); i++) {
    const SchemaArgument& argument = schema.arguments[i];
    if (overloads::is_default(argument, stack[i])) continue;
    const PyRef value = PyRef::check(wrap(stack[i]));
    check_status(PyDict_SetItemString(call.kwargs.get(), argument.name.c_str(), value.get()));
  }
  return call;
}

PyRef wrap_results(const Stack& stack) {
  if (stack.empty()) return PyRef::share(Py_None);
  if (stack.size() == 1) return PyRef::check(wrap(stack[0]));
  PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(stack.size())));
  for (size_t i = 0; i < stack.size(); i++)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     PyRef::check(wrap(stack[i])).release());
  return tuple;
}

void unwrap_results(const Schema& schema, PyObject* returned, const std::string& who,
                    Stack& stack) {
  const size_t count = schema.results.size();
  stack.clear();
  PyRef items;
  if (count == 1)
    items = PyRef::check(PyTuple_Pack(1, returned));
  else if (count == 0 && returned == Py_None)
    items = PyRef::check(PyTuple_New(0));
  else if (is_list(returned))
    items = PyRef::check(PySequence_Tuple(returned));
  else
    raise_python(PyExc_RuntimeError, "{} returned {} instead of the {} results of {}", who,
                 type_name(returned), count, schema.text());
  if (PyTuple_GET_SIZE(items.get()) != static_cast<Py_ssize_t>(count))
    raise_python(PyExc_RuntimeError, "{} returned {} results instead of the {} of {}", who,
                 static_cast<int64_t>(PyTuple_GET_SIZE(items.get())), count, schema.text());
  for (size_t i = 0; i < count; i++) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    const SchemaType& type = schema.results[i].type;
    // A result may be None where a gradient or an optional output is left out; unlike an argument,
    // a tensor is not given as a number.
    std::optional<Value> value;
    if (item == Py_None)
      value = Value();
    else if (!type.is_tensor() || is_tensor(item))
      value = to_value(item, type);
    if (!value)
      raise_python(PyExc_RuntimeError, "{} returned {} for a result of type '{}' of {}", who,
                   type_name(item), type.text(), schema.text());
    stack.push_back(*std::move(value));
  }
}

}  // namespace taeda::python
