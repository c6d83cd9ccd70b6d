// taeda._C._trace(f, inputs): a function's operators as a program that Python can read and run.
#include "taeda/trace.h"

#include "python/boxed.h"
#include "python/call.h"
#include "python/module.h"
#include "python/objects.h"
#include "python/operator_object.h"
#include "python/tensor_object.h"
#include "python/trace.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

using jit::Node;
using jit::Operand;
using jit::Program;

struct ProgramObject {
  PyObject_HEAD Program program;
};
PyTypeObject* program_type = nullptr;
PyTypeObject* number_type = nullptr;

Program& program_of(PyObject* self) { return reinterpret_cast<ProgramObject*>(self)->program; }

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  program_of(self).~Program();
  type->tp_free(self);
  Py_DECREF(type);
}

// --- numbers ---

PyObject* number(int value) {
  if (value == jit::kNoValue) Py_RETURN_NONE;
  return PyObject_CallFunction(reinterpret_cast<PyObject*>(number_type), "i", value);
}

PyRef numbers(const std::vector<int>& values) {
  PyRef list = PyRef::check(PyList_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); i++)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                    PyRef::check(number(values[i])).release());
  return list;
}

PyRef wrap_operand(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kTensor:
      return PyRef::check(number(operand.values[0]));
    case Operand::Kind::kTensors:
      return numbers(operand.values);
    default:
      return PyRef::check(wrap(operand.constant));
  }
}

// The arguments as a program would write them, with numbers for tensors.
PythonCall call_of(const Node& node) {
  const Schema& schema = node.op->schema();
  Stack stack;
  for (const Operand& operand : node.arguments)
    stack.push_back(operand.kind == Operand::Kind::kConstant ? operand.constant
                                                             : Value(TensorList()));
  PythonCall call = python_call(schema, stack);
  for (size_t i = 0; i < node.arguments.size(); i++) {
    if (node.arguments[i].kind == Operand::Kind::kConstant) continue;
    PyRef value = wrap_operand(node.arguments[i]);
    if (schema.arguments[i].keyword_only)
      check_status(
          PyDict_SetItemString(call.kwargs.get(), schema.arguments[i].name.c_str(), value.get()));
    else
      PyTuple_SetItem(call.args.get(), static_cast<Py_ssize_t>(i), value.release());
  }
  return call;
}

PyRef row_of(const Node& node) {
  const PythonCall call = call_of(node);
  PyRef outputs = PyRef::check(PyList_New(0));
  for (const Operand& result : node.results)
    check_status(PyList_Append(outputs.get(), wrap_operand(result).get()));
  return PyRef::check(Py_BuildValue("(OOOOO)", operator_object(*node.op), call.args.get(),
                                    call.kwargs.get(), outputs.get(),
                                    node.grad_enabled ? Py_True : Py_False));
}

// --- the program's attributes ---

PyObject* get_nodes(PyObject* self, void*) {
  TD_PYTHON_TRY
  PyRef list = PyRef::check(PyList_New(0));
  for (const Node& node : program_of(self).nodes)
    check_status(PyList_Append(list.get(), row_of(node).get()));
  return list.release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* get_inputs(PyObject* self, void*) {
  TD_PYTHON_TRY
  return numbers(program_of(self).inputs).release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* get_outputs(PyObject* self, void*) {
  TD_PYTHON_TRY
  return numbers(program_of(self).outputs).release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* get_constants(PyObject* self, void*) {
  TD_PYTHON_TRY
  PyRef found = PyRef::check(PyDict_New());
  for (const jit::Constant& constant : program_of(self).constants) {
    const PyRef tensor = PyRef::check(wrap(constant.tensor));
    check_status(
        PyDict_SetItem(found.get(), PyRef::check(number(constant.value)).get(), tensor.get()));
  }
  return found.release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* get_values(PyObject* self, void*) {
  TD_PYTHON_TRY
  PyRef list = PyRef::check(PyList_New(0));
  for (const jit::ValueInfo& info : program_of(self).values) {
    const PyRef dtype = PyRef::check(wrap(info.dtype)), sizes = PyRef::check(wrap(info.sizes));
    const PyRef row = PyRef::check(Py_BuildValue("(OOi)", dtype.get(), sizes.get(), info.memory));
    check_status(PyList_Append(list.get(), row.get()));
  }
  return list.release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* text(PyObject* self) {
  TD_PYTHON_TRY
  return wrap(program_of(self).text());
  TD_PYTHON_CATCH(nullptr)
}

TensorList tensors_in(PyObject* object, const char* what) {
  TensorList found;
  if (is_tensor(object)) return {tensor_of(object)};
  if (!PyList_Check(object) && !PyTuple_Check(object))
    raise_python(PyExc_TypeError, "{} must be a tensor, a list or a tuple of tensors, not {}", what,
                 type_name(object));
  const PyRef items = PyRef::check(PySequence_Tuple(object));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); i++) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    if (item != Py_None && !is_tensor(item))
      raise_python(PyExc_TypeError, "{} must be tensors, but number {} is {}", what,
                   static_cast<int64_t>(i), type_name(item));
    found.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return found;
}

PyObject* run(PyObject* self, PyObject* inputs) {
  TD_PYTHON_TRY
  const TensorList given = tensors_in(inputs, "the inputs of a program");
  const TensorList results = program_of(self).run(given);
  return wrap(Value(results));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* remove_dead_code(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  program_of(self).remove_dead_code();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// --- tracing ---

// _trace(function, inputs, composites=True) -> _Program
PyObject* trace(PyObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"function", "inputs", "composites", nullptr};
  PyObject *function, *given;
  int composites = true;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p:_trace", const_cast<char**>(names),
                                   &function, &given, &composites))
    return nullptr;
  const TensorList inputs = tensors_in(given, "the inputs of a trace");
  const PyRef list = is_tensor(given) ? PyRef::check(PyTuple_Pack(1, given))
                                      : PyRef::check(PySequence_Tuple(given));
  PyRef made = PyRef::check(program_type->tp_alloc(program_type, 0));
  new (&program_of(made.get())) Program();
  jit::Recording recording(inputs, {composites != 0});
  const PyRef result =
      PyRef::check(call_python([&] { return PyObject_CallObject(function, list.get()); }));
  program_of(made.get()) =
      recording.finish(tensors_in(result.get(), "the results of a traced function"));
  return made.release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* is_tracing(PyObject*, PyObject*) { return PyBool_FromLong(jit::is_tracing()); }

PyMethodDef functions[] = {
    {"_trace", as_function(trace), METH_VARARGS | METH_KEYWORDS,
     "_trace(function, inputs, composites=True) -> _Program\n\nThe operators of "
     "function(*inputs)."},
    {"_is_tracing", is_tracing, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef methods[] = {
    {"run", run, METH_O, "run(inputs) -> list of the outputs"},
    {"remove_dead_code", remove_dead_code, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"nodes", get_nodes, nullptr, "[(operator, args, kwargs, outputs, grad_enabled), ...]",
     nullptr},
    {"inputs", get_inputs, nullptr, nullptr, nullptr},
    {"outputs", get_outputs, nullptr, nullptr, nullptr},
    {"constants", get_constants, nullptr, "{number: tensor}", nullptr},
    {"values", get_values, nullptr, "[(dtype, shape, memory), ...] by number", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// The number of a value, which is no integer argument: printed as %3.
PyObject* number_text(PyObject* self) { return PyUnicode_FromFormat("%%%ld", PyLong_AsLong(self)); }

}  // namespace

void warn_of_constant(const char* what) {
  if (!jit::is_tracing()) return;
  const PyRef module = PyRef::check(PyImport_ImportModule("taeda.jit"));
  const PyRef category = PyRef::check(PyObject_GetAttrString(module.get(), "TracerWarning"));
  const std::string text = taeda::format(
      "Converting a tensor to {} might cause the trace to be incorrect. We can't record the data "
      "flow of Python values, so this value will be treated as a constant in the future. This "
      "means that the trace might not generalize to other inputs!",
      what);
  check_status(PyErr_WarnEx(category.get(), text.c_str(), 1));
}

void add_trace(PyObject* module) {
  PyType_Slot number_slots[] = {
      {Py_tp_repr, reinterpret_cast<void*>(number_text)},
      {0, nullptr},
  };
  PyType_Spec number_spec = {"taeda._C._ValueNumber", 0, 0, Py_TPFLAGS_DEFAULT, number_slots};
  number_type = add_type(module, "_ValueNumber", &number_spec, &PyLong_Type);
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_str, reinterpret_cast<void*>(text)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {0, nullptr},
  };
  PyType_Spec spec = {"taeda._C._Program", sizeof(ProgramObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  program_type = add_type(module, "_Program", &spec);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
