#include "python/construction.h"

#include "base/interrupt.h"
#include "core/device_memory.h"
#include "op/clone.h"
#include "op/detach.h"
#include "op/empty.h"
#include "op/to_device.h"
#include "op/to_dtype.h"
#include "ops/functionalize.h"
#include "python/arguments.h"
#include "python/call.h"
#include "python/dlpack.h"
#include "python/interop.h"
#include "python/module.h"
#include "python/pinned.h"
#include "python/storage_object.h"
#include "python/tensor_slots.h"
#include "python/torch_dispatch.h"
#include "python/wrap.h"
#include "taeda/trace.h"
#include "taeda/warning.h"

namespace taeda::python {
namespace {

constexpr int64_t kMaxDims = 64;
constexpr int64_t kSequenceWork = 16;  // what a nested sequence takes, in numbers

bool is_text(PyObject* object) { return PyUnicode_Check(object) || PyBytes_Check(object); }

// Something to descend into: a list, tuple, range, array, ..., but no number, tensor, text or 0-d
// array.
bool is_nested(PyObject* object) {
  if (PyList_CheckExact(object) || PyTuple_CheckExact(object)) return true;
  if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || is_tensor(object) ||
      is_text(object))
    return false;
  if (!PySequence_Check(object)) return false;
  if (PySequence_Length(object) < 0) {
    PyErr_Clear();
    return false;
  }
  return true;
}

// The items of a sequence as a list or tuple: no more than its length, whatever its iterator gives.
PyRef items_of(PyObject* data) {
  if (PyList_CheckExact(data) || PyTuple_CheckExact(data)) return PyRef::share(data);
  const Py_ssize_t length = PySequence_Length(data);
  if (length < 0) throw PythonError();
  PyRef iterator = PyRef::check(PyObject_GetIter(data));
  PyRef items = PyRef::check(PyList_New(0));
  while (PyRef item = PyRef::adopt(PyIter_Next(iterator.get()))) {
    if (PyList_GET_SIZE(items.get()) == length)
      raise_python(PyExc_ValueError, "expected {} items in a {}, whose len() says so, got more",
                   static_cast<int64_t>(length), type_name(data));
    check_status(PyList_Append(items.get(), item.get()));
  }
  if (PyErr_Occurred()) throw PythonError();
  return items;
}

DimVector infer_sizes(PyObject* data) {
  DimVector sizes;
  PyRef current = PyRef::share(data);
  while (is_nested(current.get())) {
    const Py_ssize_t length = PySequence_Length(current.get());
    if (length < 0) throw PythonError();
    sizes.push_back(length);
    if (static_cast<int64_t>(sizes.size()) > kMaxDims) {
      raise_python(PyExc_ValueError, "too many dimensions '{}'", type_name(current.get()));
    }
    if (length == 0) break;
    current = PyRef::check(PySequence_GetItem(current.get(), 0));
    if (is_numpy_array(current.get()) && is_nested(current.get()))
      TD_WARN_ONCE(
          "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider "
          "converting the list to a single numpy.ndarray with numpy.array() before converting to a "
          "tensor.");
    if (PyUnicode_Check(current.get())) {  // a sequence of itself, as PyTorch sees it
      raise_python(PyExc_ValueError, "too many dimensions '{}'", type_name(current.get()));
    }
  }
  return sizes;
}

DType number_dtype(PyObject* item) {
  if (PyFloat_CheckExact(item)) return default_dtype();
  if (PyBool_Check(item)) return DType::kBool;
  if (PyLong_Check(item)) return DType::kInt64;
  if (is_tensor(item)) return tensor_of(item).dtype();
  if (is_numpy_scalar(item) || is_numpy_array(item))
    return tensor_from_buffer(item, /*copy=*/true).dtype();
  if (PyFloat_Check(item)) return default_dtype();
  if (PyComplex_Check(item)) return to_complex(default_dtype());
  if (is_text(item))
    raise_python(PyExc_TypeError, "new(): invalid data type '{}'", type_name(item));
  raise_python(PyExc_RuntimeError, "Could not infer dtype of {}", type_name(item));
}

// The promoted dtype of all numbers in nested sequences.
DType infer_dtype(PyObject* data, Looks& looks, int depth = 0) {
  looks.after(kSequenceWork);
  // np.void is a sequence, but as a scalar none of numbers.
  if (!is_nested(data) || is_numpy_array(data) || is_numpy_scalar(data)) return number_dtype(data);
  if (depth > kMaxDims) raise_python(PyExc_ValueError, "too many dimensions '{}'", type_name(data));
  const PyRef items = items_of(data);
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.get());
  if (size == 0) return default_dtype();
  DType found = DType::kBool;
  bool first = true;
  PyTypeObject* last_type = nullptr;  // runs of one number type are the rule
  for (Py_ssize_t i = 0; i < size && i < PySequence_Fast_GET_SIZE(items.get()); i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (Py_TYPE(item) == last_type) continue;
    PyRef kept = PyRef::share(item);
    const bool plain = PyFloat_CheckExact(item) || PyLong_CheckExact(item) || PyBool_Check(item);
    const DType dtype = plain ? number_dtype(item) : infer_dtype(item, looks, depth + 1);
    found = first ? dtype : promote_types(found, dtype);
    first = false;
    last_type = plain ? Py_TYPE(item) : nullptr;
    if (is_complex(found)) return found;
  }
  return found;
}

// --- storing numbers ---

[[noreturn]] void fail_range(DType dtype) {
  raise_python(PyExc_RuntimeError, "value cannot be converted to type {} without overflow",
               dtype == DType::kInt64 ? "int64_t" : to_text(dtype));
}

template <class T>
T store_integer(PyObject* item) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (PyLong_Check(item)) {
      const T value = PyLong_AsUnsignedLongLong(item);  // OverflowError outside its range
      if (value == static_cast<T>(-1) && PyErr_Occurred()) throw PythonError();
      return value;
    }
  }
  if (PyLong_Check(item)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (overflow) raise_python(PyExc_ValueError, "Overflow when unpacking long long");
    // Negative numbers wrap into unsigned types; everything else must fit.
    const bool fits =
        value <= static_cast<long long>(std::numeric_limits<T>::max()) &&
        (std::is_unsigned_v<T> ? value >= -static_cast<long long>(std::numeric_limits<T>::max())
                               : value >= static_cast<long long>(std::numeric_limits<T>::min()));
    if (!fits) fail_range(kDTypeOf<T>);
    return static_cast<T>(value);
  }
  if (PyComplex_Check(item))
    raise_python(PyExc_TypeError, "int() argument must not be a complex number");
  if (can_be_int(item)) return static_cast<T>(to_int(item));
  const double value = to_float(item);
  if (!(value > -9.3e18 && value < 9.3e18)) fail_range(kDTypeOf<T>);
  const double low = static_cast<double>(std::numeric_limits<T>::min()),
               high = static_cast<double>(std::numeric_limits<T>::max());
  if (value >= high + 1.0 || value <= low - 1.0 || (sizeof(T) == 8 && value >= high))
    fail_range(kDTypeOf<T>);
  return static_cast<T>(value);
}

template <class T>
T store(PyObject* item) {
  if constexpr (std::is_same_v<T, Bool>) {
    const int truth = PyObject_IsTrue(item);
    check_status(truth);
    return truth != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return store_integer<T>(item);
  } else if constexpr (is_complex(kDTypeOf<T>)) {
    return to_scalar(item).to<T>();
  } else {
    if (PyFloat_CheckExact(item))
      return T(
          static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(PyFloat_AS_DOUBLE(item)));
    if (PyComplex_Check(item)) raise_python(PyExc_TypeError, "must be real number, not complex");
    return T(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(to_float(item)));
  }
}

template <class T>
class Filler {
 public:
  Filler(IntSpan sizes, T* out) : sizes_(sizes), out_(out) {}

  void fill(PyObject* data, size_t dim = 0) {
    looks_.after(kSequenceWork);
    if (dim == sizes_.size()) {
      if (is_nested(data))
        raise_python(PyExc_TypeError, "expected a number at dim {} (got {})", dim, type_name(data));
      *out_++ = store<T>(is_tensor(data) ? element(data).get() : data);
      return;
    }
    if (!is_nested(data)) raise_python(PyExc_TypeError, "not a sequence");
    const PyRef items = items_of(data);
    const int64_t expected = sizes_[dim];
    const auto check_size = [&] {
      const int64_t size = PySequence_Fast_GET_SIZE(items.get());
      if (size != expected) {
        raise_python(PyExc_ValueError,
                     "expected sequence of length {} at dim {} (got {})\nFix: rows need one "
                     "length: pad them; torch.nn.utils.rnn.pad_sequence pads tensors",
                     expected, static_cast<int64_t>(dim), size);
      }
    };
    check_size();
    const bool last = dim + 1 == sizes_.size();
    for (int64_t i = 0; i < expected; i++) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
      if (last && (PyFloat_CheckExact(item) || PyLong_CheckExact(item))) {
        *out_++ = store<T>(item);  // runs no Python code
        continue;
      }
      PyRef kept = PyRef::share(item);
      fill(item, dim + 1);
      check_size();  // Python code may have changed the list
    }
  }

 private:
  // The value of a one-element tensor as a Python number.
  static PyRef element(PyObject* tensor) {
    const Tensor& x = tensor_of(tensor);
    if (x.numel() != 1)
      raise_python(PyExc_ValueError,
                   "only one element tensors can be converted to Python scalars\n"
                   "Fix: tensors of one shape become one by torch.stack(tensors)");
    return PyRef::check(wrap(x.item_scalar()));
  }

  IntSpan sizes_;
  T* out_;
  Looks looks_;
};

Tensor to_place(const Tensor& x, OptDType dtype, OptDevice device) {
  Tensor result = dtype && *dtype != x.dtype() ? op::to_dtype(x, *dtype, false, std::nullopt) : x;
  if (device && !(*device == x.device())) result = on_device(result, *device);
  return result;
}

// --- functions of the module ---

constinit Param kTensorParams[] = {
    {"data", Kind::kObject},
    {"dtype=None", Kind::kDType, Param::kKeywordOnly | Param::kNone},
    {"device=None", Kind::kDevice, Param::kKeywordOnly | Param::kNone},
    {"requires_grad=False", Kind::kBool, Param::kKeywordOnly},
    {"pin_memory=False", Kind::kBool, Param::kKeywordOnly},
    {"names=None", Kind::kObject, Param::kKeywordOnly | Param::kNone}};
const Signature kTensorSignatures[] = {{kTensorParams}};
const Function kTensorFunction = {"tensor", "torch.tensor", kTensorSignatures, 1, false};

PyObject* tensor_function(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                          PyObject* kwnames) {
  TD_PYTHON_TRY
  Arguments a(kTensorFunction, self, args, nargs, kwnames);
  if (a.overridden()) [[unlikely]]
    return a.call_override();
  if (is_tensor(a.object(0))) {
    check_status(PyErr_WarnEx(
        PyExc_UserWarning,
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
        "or sourceTensor.detach().clone().requires_grad_(True), rather than "
        "torch.tensor(sourceTensor).",
        1));
  }
  Tensor result = tensor_from_data(a.object(0), a.opt_dtype(1), a.opt_device(2));
  if (a.boolean(4, false)) result = pinned(result);
  if (a.boolean(3, false)) result.requires_grad_();
  return wrap(std::move(result));
  TD_PYTHON_CATCH(nullptr)
}

constinit Param kAsTensorParams[] = {{"data", Kind::kObject},
                                     {"dtype=None", Kind::kDType, Param::kNone},
                                     {"device=None", Kind::kDevice, Param::kNone}};
const Signature kAsTensorSignatures[] = {{kAsTensorParams}};
const Function kAsTensorFunction = {"as_tensor", "torch.as_tensor", kAsTensorSignatures, 1, false};

// Shares memory with tensors and arrays of the right dtype.
PyObject* as_tensor(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  TD_PYTHON_TRY
  Arguments a(kAsTensorFunction, self, args, nargs, kwnames);
  if (a.overridden()) [[unlikely]]
    return a.call_override();
  PyObject* data = a.object(0);
  if (is_tensor(data)) {
    const Tensor& x = tensor_of(data);
    const Tensor result = to_place(x, a.opt_dtype(1), a.opt_device(2));
    return result.is_same(x) ? new_ref(data) : wrap(result);
  }
  if (is_numpy_array(data))
    return wrap(to_place(tensor_from_buffer(data, false), a.opt_dtype(1), a.opt_device(2)));
  return wrap(tensor_from_data(data, a.opt_dtype(1), a.opt_device(2)));
  TD_PYTHON_CATCH(nullptr)
}

constinit Param kAsArrayParams[] = {
    {"obj", Kind::kObject},
    {"dtype=None", Kind::kDType, Param::kKeywordOnly | Param::kNone},
    {"device=None", Kind::kDevice, Param::kKeywordOnly | Param::kNone},
    {"copy=None", Kind::kBool, Param::kKeywordOnly | Param::kNone},
    {"requires_grad=False", Kind::kBool, Param::kKeywordOnly}};
const Signature kAsArraySignatures[] = {{kAsArrayParams}};
const Function kAsArrayFunction = {"asarray", "torch.asarray", kAsArraySignatures, 1, false};

// Tensors, arrays, DLPack and buffers share memory; `copy` demands or forbids a copy.
PyObject* asarray(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  TD_PYTHON_TRY
  Arguments a(kAsArrayFunction, self, args, nargs, kwnames);
  if (a.overridden()) [[unlikely]]
    return a.call_override();
  PyObject* data = a.object(0);
  const OptBool copy = a.opt_boolean(3);
  const OptDType dtype = a.opt_dtype(1);
  const OptDevice device = a.opt_device(2);
  Tensor source;
  bool shared = true;
  if (is_tensor(data))
    source = tensor_of(data);
  else if (is_numpy_array(data))
    source = tensor_from_buffer(data, false);
  else if (PyCapsule_CheckExact(data) ||
           (!is_nested(data) && PyObject_HasAttrString(data, "__dlpack__")))
    source = from_dlpack(data, nullptr, nullptr);
  else if (PyObject_CheckBuffer(data) && !is_text(data))
    source = tensor_from_buffer(data, false);
  else
    shared = false;
  Tensor result;
  if (!shared) {
    if (copy && !*copy)
      raise_python(PyExc_ValueError, "can't alias arbitrary sequence into a tensor.");
    result = tensor_from_data(data, dtype, device);
  } else {
    result = to_place(source, dtype, device);
    if (copy && !*copy && !result.is_same(source)) {
      raise_python(PyExc_ValueError,
                   "can't alias tensor with another dtype or device: copy=False was given");
    }
    if (copy && *copy && result.is_same(source)) result = op::clone(source, std::nullopt);
  }
  if (a.boolean(4, false)) {
    if (result.is_same(source) && !result.is_leaf()) result = op::detach(result);
    result.requires_grad_();
  } else if (shared && result.requires_grad()) {
    result = op::detach(result);
  }
  return is_tensor(data) && result.is_same(tensor_of(data)) ? new_ref(data)
                                                            : wrap(std::move(result));
  TD_PYTHON_CATCH(nullptr)
}

// --- storages ---

// A tensor on the memory of a storage: an UntypedStorage's bytes are read as `dtype`, a
// TypedStorage must have it. None for other objects.
std::optional<Tensor> tensor_on_storage(PyObject* object, DType dtype) {
  PyRef untyped;
  if (!is_storage(object)) {
    if (!PyObject_HasAttrString(object, "_untyped_storage")) return std::nullopt;
    untyped = PyRef::check(PyObject_GetAttrString(object, "_untyped_storage"));
    const PyRef given = PyRef::check(PyObject_GetAttrString(object, "dtype"));
    if (to_dtype(given.get()) != dtype) {
      raise_python(PyExc_RuntimeError,
                   "Expected a Storage of type {} or an UntypedStorage, but got type {}",
                   scalar_type_name(dtype), scalar_type_name(to_dtype(given.get())));
    }
    object = untyped.get();
  }
  const Ref<Storage>& storage = storage_of(object);
  Tensor result(make_ref<TensorImpl>(storage, dtype, storage->device()));
  result.impl()->set_contiguous_layout({storage->nbytes() / item_size(dtype)});
  return result;
}

// --- Tensor(...), the constructor of old: Tensor(2, 3), Tensor([1, 2]), Tensor(other) ---

// `keeps_dtype`: whether a tensor may have another dtype, and is given back as it is.
Tensor legacy_tensor(PyObject* args, DType dtype, OptDevice device, bool keeps_dtype) {
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (count == 0) return fresh_tensor({0}, dtype, device.value_or(Device()));
  PyObject* first = PyTuple_GET_ITEM(args, 0);
  if (count == 1 && is_tensor(first)) {
    const Tensor& other = tensor_of(first);
    if (other.dtype() != dtype && !keeps_dtype) {
      raise_python(PyExc_TypeError, "new(): expected a tensor of dtype {}, got one of {}", dtype,
                   other.dtype());
    }
    return op::detach(other);
  }
  if (count == 1 && !is_tensor(first)) {
    if (std::optional<Tensor> shared = tensor_on_storage(first, dtype)) return *std::move(shared);
  }
  if (PyObject_TypeCheck(first, size_type) && count == 1)
    return fresh_tensor(to_ints(first), dtype, device.value_or(Device()));
  bool sizes = true;
  for (Py_ssize_t i = 0; i < count; i++) sizes = sizes && can_be_int(PyTuple_GET_ITEM(args, i));
  if (sizes) {
    const DimVector values = to_ints(args);
    TensorOptions options(dtype);
    if (device) options.device = *device;
    return op::empty(values, options, std::nullopt);
  }
  if (count != 1)
    raise_python(PyExc_TypeError, "new() received an invalid combination of arguments");
  if (is_text(first))
    raise_python(PyExc_TypeError, "new(): invalid data type '{}'", type_name(first));
  if (!is_nested(first))
    raise_python(PyExc_TypeError, "new(): data must be a sequence (got {})", type_name(first));
  return tensor_from_data(first, dtype, device);
}

OptDevice device_keyword(PyObject* kwargs) {
  PyObject* device = kwargs ? PyDict_GetItemString(kwargs, "device") : nullptr;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);) {
    if (value == device) continue;
    raise_python(PyExc_TypeError,
                 "new() got an unexpected keyword argument '{}'\nFix: torch.tensor(data) takes "
                 "dtype, device and requires_grad",
                 utf8(key));
  }
  return device && device != Py_None ? OptDevice(to_device(device)) : OptDevice();
}

// Whether Tensor(data) goes by torch.tensor: a mode such as FakeTensorMode gives the tensor.
bool made_by_mode(PyTypeObject* type, PyObject* args) {
  if (Arguments::torch_function_modes == 0 || type != tensor_type) return false;
  if (PyTuple_GET_SIZE(args) != 1) return false;
  PyObject* first = PyTuple_GET_ITEM(args, 0);
  if (!PyList_Check(first) && !PyTuple_CheckExact(first)) return false;
  const PyRef modes = torch_dispatch_modes();
  return modes && PyList_GET_SIZE(modes.get()) > 0;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  const OptDevice device = device_keyword(kwargs);
  if (made_by_mode(type, args)) {
    const PyRef dtype = PyRef::check(wrap(default_dtype()));
    PyObject* const values[] = {PyTuple_GET_ITEM(args, 0), dtype.get()};
    const PyRef names = PyRef::check(Py_BuildValue("(s)", "dtype"));
    return tensor_function(nullptr, values, 1, names.get());
  }
  return wrap_as(type, legacy_tensor(args, default_dtype(), device, /*keeps_dtype=*/true));
  TD_PYTHON_CATCH(nullptr)
}

// _legacy_tensor(dtype, *args, device=None): what FloatTensor(...) and the like call.
PyObject* legacy_function(PyObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  if (PyTuple_GET_SIZE(args) < 1 || !is_dtype(PyTuple_GET_ITEM(args, 0))) {
    raise_python(PyExc_TypeError, "_legacy_tensor() expects a dtype first");
  }
  PyRef rest = PyRef::check(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)));
  const DType dtype = to_dtype(PyTuple_GET_ITEM(args, 0));
  return wrap(legacy_tensor(rest.get(), dtype, device_keyword(kwargs), /*keeps_dtype=*/false));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"tensor", as_function(tensor_function), METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor\n\n"
     "A new tensor with the values of `data`: a number, nested sequences of numbers, an array or a "
     "tensor."},
    {"as_tensor", as_function(as_tensor), METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None) -> Tensor\n\n"
     "`data` as a tensor, sharing memory with tensors and NumPy arrays of that dtype."},
    {"asarray", as_function(asarray), METH_FASTCALL | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False) -> Tensor\n\n"
     "`obj` as a tensor; copy=True always copies, copy=False raises where a copy would be needed."},
    {"_legacy_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(legacy_function)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Tensor on_device(const Tensor& x, Device device) {
  if (resolved(device) == x.device()) return x;
  return op::to_device(x, device, false);
}

Tensor fresh_tensor(IntSpan sizes, DType dtype, Device device) {
  const ExcludeKeys memory(KeySet(Key::kFunctionalize) | Key::kTrace);
  TensorOptions options(dtype);
  options.device = device;
  return op::empty(sizes, options, std::nullopt);
}

namespace {
// New values as a TorchDispatchMode gives them to the program: it sees aten::lift_fresh.
Tensor lifted(const Tensor& t) {
  static PyObject* const lift_fresh = [] {
    const PyRef module = PyRef::check(PyImport_ImportModule("taeda._library.aten_copies"));
    return PyRef::check(PyObject_GetAttrString(module.get(), "_lift_fresh")).release();
  }();
  const PyRef object = PyRef::check(wrap(t));
  const PyRef result =
      PyRef::check(call_python([&] { return PyObject_CallOneArg(lift_fresh, object.get()); }));
  return tensor_of(result.get());
}

// Of new values, what a function that is functionalized may write. Traced, they are a constant of
// which each run has a copy.
Tensor writable(Tensor t) {
  if (thread_modes.included.empty()) [[likely]]
    return t;
  if (thread_modes.included.has(Key::kPython)) t = lifted(t);
  return functionalize::is_active() || jit::is_tracing() ? op::clone(t, std::nullopt) : t;
}
}  // namespace

Tensor tensor_from_data(PyObject* data, OptDType dtype, OptDevice device) {
  if (is_tensor(data)) {
    Tensor copy = op::clone(op::detach(tensor_of(data)), std::nullopt);
    return to_place(copy, dtype, device);
  }
  if (is_numpy_array(data))
    return writable(to_place(tensor_from_buffer(data, /*copy=*/true), dtype, device));
  if (is_text(data))
    raise_python(PyExc_TypeError, "new(): invalid data type '{}'", type_name(data));
  if (!PyList_CheckExact(data) && !PyTuple_CheckExact(data) && !can_be_scalar(data)) {
    if (const auto shared = tensor_on_storage(data, dtype.value_or(default_dtype())))
      return to_place(op::clone(*shared, std::nullopt), {}, device);
  }
  const DimVector sizes = infer_sizes(data);
  Looks looks;
  const DType chosen = dtype ? *dtype : infer_dtype(data, looks);
  Tensor result = [&] {
    const ExcludeKeys unseen((KeySet(Key::kPython)));  // a mode sees the values: lift_fresh
    return fresh_tensor(sizes, chosen);
  }();
  if (result.numel() > 0 || sizes.size() == 0) {
    switch (chosen) {
#define TD_CASE(name, type, ...)                                           \
  case DType::name:                                                        \
    Filler<type>(sizes, static_cast<type*>(result.data_ptr())).fill(data); \
    break;
      TD_DTYPES(TD_CASE)
#undef TD_CASE
    }
  } else {
    // Nothing to store, but the nesting must still be that of a tensor.
    uint8_t unused = 0;
    Filler<uint8_t>(sizes, &unused).fill(data);
  }
  return writable(to_place(result, {}, device));
}

void add_construction_slots(TypeSlots& slots) { slots.push_back(type_slot(Py_tp_new, tensor_new)); }

void add_conversions(PyObject* module) {
  add_signatures(functions, false);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
