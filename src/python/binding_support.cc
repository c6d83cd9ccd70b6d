#include "python/binding_support.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "base/interrupt.h"
#include "device/device.h"
#include "python/factory_call.h"
#include "python/generated.h"
#include "python/names.h"

namespace taeda::python {
namespace {

bool is_sparse_tensor(PyObject* object) {
  return is_tensor(object) && tensor_of(object).defined() && tensor_of(object).is_sparse();
}

}  // namespace

TensorOptions tensor_options(const Arguments& arguments, int first) {
  TensorOptions options;
  options.dtype = arguments.opt_dtype(first);
  if (arguments.present(first + 1) &&
      (arguments.object(first + 1) != strided_layout || is_sparse_tensor(arguments.object(0))))
    throw FactoryCall{"taeda.sparse._factories"};
  options.device = arguments.opt_device(first + 2);
  if (arguments.present(first + 3) && arguments.boolean(first + 3)) {
    TD_CHECK(cuda::device_count() > 0,
             "pin_memory: cannot access accelerator device when none is available.");
    throw FactoryCall{"taeda._pinned"};
  }
  options.requires_grad = arguments.present(first + 4) && arguments.boolean(first + 4);
  return options;
}

void require_options_of(const Tensor& out, const TensorOptions& options) {
  TD_CHECK(!options.dtype || *options.dtype == out.dtype(),
           "dtype {} does not match dtype of out parameter ({})", scalar_type_name(*options.dtype),
           scalar_type_name(out.dtype()));
  TD_CHECK(!options.device || options.device->type == out.device().type,
           "device type {} does not match device type of out parameter ({})",
           Device(options.device->type), Device(out.device().type));
}

TensorList output_tensors(const Arguments& arguments, int i, size_t count) {
  TensorList outputs = arguments.tensors(i);
  if (outputs.size() != count) {
    raise_python(PyExc_TypeError, "expected tuple of {} elements but got {}", count,
                 outputs.size());
  }
  return outputs;
}

PyObject* wrap_integer(const Scalar& value) {
  return value.is_huge() ? PyLong_FromUnsignedLongLong(value.to<uint64_t>())
                         : PyLong_FromLongLong(value.to_int());
}

PyObject* wrap(const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::kBool:
      return PyBool_FromLong(value.to_bool());
    case Scalar::Kind::kInt:
      return wrap_integer(value);
    case Scalar::Kind::kFloat:
      return PyFloat_FromDouble(value.to_double());
    case Scalar::Kind::kComplex:
      return PyComplex_FromDoubles(value.to_complex().real(), value.to_complex().imag());
  }
  Py_RETURN_NONE;
}

PyObject* wrap(TensorList tensors) {
  PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  constexpr int64_t kObjectWork = 16;  // what a Python object takes, in elements
  Looks looks;
  for (size_t i = 0; i < tensors.size(); i++) {
    looks.after(kObjectWork);
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     PyRef::check(wrap(std::move(tensors[i]))).release());
  }
  return tuple.release();
}

// torch.return_types.max(
// values=tensor([2.]),
// indices=tensor([1]))
static PyObject* result_repr(PyObject* self) {
  TD_PYTHON_TRY
  std::string text = std::string(Py_TYPE(self)->tp_name) + "(";
  PyRef names = PyRef::check(PyObject_GetAttrString(self, "__match_args__"));
  if (!PyTuple_Check(names.get()) || PyTuple_GET_SIZE(names.get()) != PyTuple_GET_SIZE(self))
    raise_python(PyExc_TypeError, "__match_args__ must name the {} items of {}",
                 static_cast<int64_t>(PyTuple_GET_SIZE(self)), type_name(self));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) {
    PyRef value = PyRef::check(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
    text += i ? ",\n" : "\n";
    text +=
        std::string(utf8(PyTuple_GET_ITEM(names.get(), i))) + "=" + std::string(utf8(value.get()));
  }
  return PyUnicode_FromStringAndSize((text + ")").data(), static_cast<Py_ssize_t>(text.size()) + 1);
  TD_PYTHON_CATCH(nullptr)
}

static PyTypeObject* make_result_type(const char* name, const char* const* fields) {
  int count = 0;
  while (fields[count]) count++;
  std::vector<PyStructSequence_Field> described;
  for (int i = 0; i < count; i++) described.push_back({fields[i], nullptr});
  described.push_back({nullptr, nullptr});
  // The names stay referenced by the type, which lives for good.
  const std::string* full = new std::string(std::string("torch.return_types.") + name);
  PyStructSequence_Desc description = {full->c_str(), nullptr, described.data(), count};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (!type) throw PythonError();
  type->tp_repr = result_repr;
  // Where pickle finds the type.
  PyRef module = name_in_package("return_types");
  check_status(
      PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), "__module__", module.get()));
  return type;
}

PyObject* ResultType::make() {
  if (!type) type = make_result_type(name, fields);
  PyObject* tuple = PyStructSequence_New(type);
  if (!tuple) throw PythonError();
  return tuple;
}

PyObject* ResultType::name_outputs(PyObject* outputs) {
  const PyRef given = PyRef::adopt(outputs);
  PyRef result = PyRef::adopt(make());
  for (Py_ssize_t i = 0; i < Py_SIZE(result.get()); i++) {
    const PyRef item = PyRef::check(PySequence_GetItem(given.get(), i));
    PyStructSequence_SET_ITEM(result.get(), i, Py_NewRef(item.get()));
  }
  return result.release();
}

PyObject* result_types(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  PyRef types = PyRef::check(PyDict_New());
  for (ResultType* const* result = kResultTypes; *result; result++) {
    auto& [name, fields, type] = **result;
    if (name[0] == '_') continue;  // not PyTorch's
    if (!type) type = make_result_type(name, fields);
    check_status(PyDict_SetItemString(types.get(), name, reinterpret_cast<PyObject*>(type)));
  }
  return types.release();
  TD_PYTHON_CATCH(nullptr)
}

}  // namespace taeda::python
