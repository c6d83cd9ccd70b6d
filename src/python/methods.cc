// Tensor's methods that the operator table does not describe: access to values and memory,
// conversions, copies of the object, the ties to autograd.
#include "base/interrupt.h"
#include "core/device_memory.h"
#include "core/host_copy.h"
#include "core/shared_memory.h"
#include "core/sparse.h"
#include "device/graph.h"
#include "device/memory.h"
#include "op/alias.h"
#include "op/clone.h"
#include "op/detach.h"
#include "op/to_device.h"
#include "op/to_dtype.h"
#include "python/arguments.h"
#include "python/autograd.h"
#include "python/call.h"
#include "python/construction.h"
#include "python/dlpack.h"
#include "python/interop.h"
#include "python/module.h"
#include "python/pinned.h"
#include "python/storage_object.h"
#include "python/torch_function.h"
#include "python/trace.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

using FastArgs = PyObject* const*;

// A method: its parameters after self, and a body that sees the parsed arguments.
#define TD_METHOD(name, ...)                                                                    \
  constinit Param name##_params[] = {{"self", Kind::kTensor}, ##__VA_ARGS__};                   \
  const Signature name##_signatures[] = {{name##_params}};                                      \
  const Function name##_function = {#name, "Tensor." #name, name##_signatures, 1, true};        \
  PyObject* name##_body(Arguments& a);                                                          \
  PyObject* method_##name(PyObject* self, FastArgs args, Py_ssize_t nargs, PyObject* kwnames) { \
    TD_PYTHON_TRY                                                                               \
    Arguments a(name##_function, self, args, nargs, kwnames);                                   \
    if (a.overridden()) [[unlikely]]                                                            \
      return a.call_override();                                                                 \
    return name##_body(a);                                                                      \
    TD_PYTHON_CATCH(nullptr)                                                                    \
  }                                                                                             \
  PyObject* name##_body([[maybe_unused]] Arguments& a)

constexpr uint8_t kNone = Param::kNone;
constexpr uint8_t kOnly = Param::kKeywordOnly;

// RecursionError, not the end of the stack, for what nests without end.
class RecursionGuard {
 public:
  explicit RecursionGuard(const char* where) {
    if (Py_EnterRecursiveCall(where)) throw PythonError();
  }
  ~RecursionGuard() { Py_LeaveRecursiveCall(); }
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
};

// --- layout ---

TD_METHOD(size, {"dim=None", Kind::kInt, kNone}) {
  const Tensor& x = a.tensor(0);
  if (!a.present(1)) return wrap(x.sizes());
  const int64_t dim = a.integer(1), n = x.dim() ? x.dim() : 1;
  TD_CHECK_INDEX(dim >= -n && dim < n && x.dim() > 0,
                 "Dimension out of range (expected to be in range of [{}, {}], but got {})", -n,
                 n - 1, dim);
  return wrap(x.size(dim));
}

TD_METHOD(stride, {"dim=None", Kind::kInt, kNone}) {
  const Tensor& x = a.tensor(0);
  if (a.present(1)) return wrap(x.stride(a.integer(1)));
  PyRef strides = PyRef::check(PyTuple_New(x.dim()));
  for (Py_ssize_t i = 0; i < x.dim(); i++) {
    PyTuple_SET_ITEM(strides.get(), i, PyLong_FromLongLong(x.strides()[static_cast<size_t>(i)]));
  }
  return strides.release();
}

TD_METHOD(is_contiguous, {"memory_format=torch.contiguous_format", Kind::kMemoryFormat, kOnly}) {
  return wrap(a.tensor(0).is_contiguous(a.memory_format(1, MemoryFormat::kContiguous)));
}

TD_METHOD(dim) { return wrap(a.tensor(0).dim()); }
TD_METHOD(numel) { return wrap(a.tensor(0).numel()); }
TD_METHOD(element_size) { return wrap(a.tensor(0).itemsize()); }
TD_METHOD(storage_offset) { return wrap(a.tensor(0).storage_offset()); }
TD_METHOD(data_ptr) {
  const TensorImpl& x = *a.tensor(0).impl();
  TD_CHECK(!a.tensor(0).is_sparse(),
           "Cannot access data pointer of Tensor that doesn't have storage");
  const bool wraps = x.keys.has(Key::kPython) && (!x.storage || !x.storage->data());
  if (!wraps) return PyLong_FromVoidPtr(x.data());
  const Tensor& t = a.tensor(0);  // of a class that keeps its memory itself: as if that began at 0
  return PyLong_FromLongLong(t.numel() > 0 ? t.storage_offset() * t.itemsize() : 0);
}
TD_METHOD(is_floating_point) { return wrap(a.tensor(0).is_floating_point()); }
TD_METHOD(is_complex) { return wrap(a.tensor(0).is_complex()); }
TD_METHOD(is_signed) { return wrap(is_signed(a.tensor(0).dtype())); }
TD_METHOD(is_inference) { return wrap(a.tensor(0).is_inference()); }
TD_METHOD(is_conj) { return wrap(a.tensor(0).is_conj()); }
TD_METHOD(is_neg) { return wrap(a.tensor(0).is_neg()); }
// For files and messages, which hold the memory and the bits: PyTorch's names.
PyObject* set_bit(const Tensor& x, Key bit, bool value) {
  KeySet& keys = x.impl()->keys;
  keys = value ? keys | bit : keys - bit;
  Py_RETURN_NONE;
}
TD_METHOD(_set_conj, {"x", Kind::kBool}) {
  TD_CHECK(!a.boolean(1, false) || a.tensor(0).is_complex(),
           "_set_conj: expected a complex tensor, got {}", a.tensor(0).dtype());
  return set_bit(a.tensor(0), Key::kConjugate, a.boolean(1, false));
}
TD_METHOD(_set_neg, {"x", Kind::kBool}) {
  return set_bit(a.tensor(0), Key::kNegative, a.boolean(1, false));
}
TD_METHOD(is_pinned, {"device=None", Kind::kDevice, kNone}) { return wrap(is_pinned(a.tensor(0))); }
// Memory of devices counts as shared in PyTorch.
TD_METHOD(is_shared) {
  const Tensor& x = a.tensor(0);
  return wrap(x.device().type == DeviceType::kCUDA || is_shared(*x.storage()));
}
TD_METHOD(get_device) {
  const Device device = a.tensor(0).device();
  return wrap(static_cast<int64_t>(device.type == DeviceType::kCUDA ? device.index : -1));
}
TD_METHOD(untyped_storage) {
  TD_CHECK_IMPLEMENTED(!a.tensor(0).is_sparse(), "Cannot access storage of SparseTensorImpl");
  TD_CHECK_IMPLEMENTED(!a.tensor(0).impl()->keys.has(Key::kBatched),
                       "vmap: Cannot access storage of a batched Tensor");
  return wrap(a.tensor(0).storage());
}
TD_METHOD(is_set_to, {"tensor", Kind::kTensor}) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  return wrap(x.storage() == y.storage() && x.storage_offset() == y.storage_offset() &&
              x.sizes() == y.sizes() && x.strides() == y.strides() && x.is_conj() == y.is_conj() &&
              x.is_neg() == y.is_neg());
}

// --- values ---

// A graph that is being captured has no values yet; AcceleratorError names who asked.
void needs_values(const Tensor& x, const char* who) {
  if (x.device().type == DeviceType::kCUDA)
    cuda::forbid_while_capturing(cuda::Stream::current(x.device().index), who);
}

TD_METHOD(item) {
  const Tensor& x = a.tensor(0);
  TD_CHECK(x.numel() == 1,
           "a Tensor with {} elements cannot be converted to Scalar: item() takes the only one, "
           "tolist() all of them",
           x.numel());
  leaves_trace("a Python number");
  needs_values(x, "Tensor.item");
  return wrap(x.item_scalar());
}

// One number as Python has it.
template <class T>
PyObject* number(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  if constexpr (std::is_same_v<T, Bool>) {
    return PyBool_FromLong(value);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return PyLong_FromUnsignedLongLong(value);
  } else if constexpr (std::is_integral_v<T>) {
    return PyLong_FromLongLong(value);
  } else if constexpr (is_complex(kDTypeOf<T>)) {
    using Parts = std::conditional_t<sizeof(T) == 16, double, float>;
    const std::complex<double> z(static_cast<std::complex<Parts>>(value));
    return PyComplex_FromDoubles(z.real(), z.imag());
  } else {
    return PyFloat_FromDouble(
        static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(value)));
  }
}

// One row of numbers, `step` bytes apart.
template <class T>
void fill_list(PyObject* list, const char* data, int64_t size, int64_t step) {
  in_slices(size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      PyObject* item = number<T>(data + i * step);
      if (!item) throw PythonError();
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
    }
  });
}

using NumberReader = PyObject* (*)(const char* data);
using RowReader = void (*)(PyObject* list, const char* data, int64_t size, int64_t step);
#define TD_READERS(name, type, ...) {number<type>, fill_list<type>},
constexpr struct {
  NumberReader number;
  RowReader row;
} kReaders[kNumDTypes] = {TD_DTYPES(TD_READERS)};
#undef TD_READERS

constexpr int64_t kListWork = 16;  // what a list takes, in elements

PyObject* nested_list(const Tensor& x, const char* data, size_t dim, Looks& looks) {
  const RecursionGuard guard(" in tolist()");
  looks.after(kListWork);
  const int64_t size = x.sizes()[dim], step = x.strides()[dim] * x.itemsize();
  PyRef list = PyRef::check(PyList_New(static_cast<Py_ssize_t>(size)));
  if (dim + 1 == x.sizes().size()) {
    kReaders[static_cast<int>(x.dtype())].row(list.get(), data, data ? size : 0, step);
  } else {
    for (int64_t i = 0; i < size; i++) {
      PyObject* row = nested_list(x, data ? data + i * step : nullptr, dim + 1, looks);
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), row);
    }
  }
  return list.release();
}

PyObject* tolist(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  if (Arguments::torch_function_modes > 0 || overrides_torch_function(self)) [[unlikely]] {
    PyRef function =
        PyRef::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "tolist"));
    return call_torch_function(function.get(), &self, 1, nullptr);
  }
  leaves_trace("a Python list");
  TD_CHECK(!tensor_of(self).is_sparse(),
           "Cannot access data pointer of Tensor that doesn't have storage");
  needs_values(tensor_of(self), "Tensor.tolist");
  const Tensor x = host_copy(tensor_of(self));
  const char* data = static_cast<const char*>(x.data_ptr());
  if (x.dim() == 0) return kReaders[static_cast<int>(x.dtype())].number(data);
  Looks looks;
  return nested_list(x, data, 0, looks);
  TD_PYTHON_CATCH(nullptr)
}

PyObject* to_numpy(const Tensor& x, bool force) {
  leaves_trace("a NumPy array");
  if (x.is_sparse())
    raise_python(PyExc_TypeError,
                 "can't convert {} layout tensor to numpy. Use Tensor.to_dense() first.",
                 layout_name(x.layout()));
  if (!x.device().is_cpu()) {
    if (force && has_memory(x.device())) return array_from_tensor(host_copy(op::detach(x)));
    raise_python(PyExc_TypeError,
                 "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the "
                 "tensor to host memory first.",
                 x.device());
  }
  if (x.is_conj() || x.is_neg()) {
    TD_CHECK(force,
             "Can't call numpy() on Tensor that has {} bit set. Use tensor.resolve_{}().numpy() "
             "instead.",
             x.is_conj() ? "conjugate" : "negative", x.is_conj() ? "conj" : "neg");
    return array_from_tensor(host_copy(op::detach(x)));
  }
  if (x.requires_grad()) {
    TD_CHECK(
        force || !thread_modes.grad_enabled,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.\n"
        "Fix: arrays have no history, so numpy() wants a tensor without: x.detach().numpy()");
    return array_from_tensor(op::detach(x));
  }
  return array_from_tensor(x);
}

TD_METHOD(numpy, {"force=False", Kind::kBool, kOnly}) {
  return to_numpy(a.tensor(0), a.boolean(1, false));
}

TD_METHOD(__array__, {"dtype=None", Kind::kObject, kNone}, {"copy=None", Kind::kObject, kNone}) {
  PyRef array = PyRef::check(to_numpy(a.tensor(0), false));
  if (a.present(1)) {
    PyRef kwargs =
        PyRef::check(Py_BuildValue("{s:O}", "copy", a.object(2) == Py_True ? Py_True : Py_False));
    PyRef astype = PyRef::check(PyObject_GetAttrString(array.get(), "astype"));
    PyRef one = PyRef::check(PyTuple_Pack(1, a.object(1)));
    return call_python([&] { return PyObject_Call(astype.get(), one.get(), kwargs.get()); });
  }
  return a.object(2) == Py_True
             ? call_python([&] { return PyObject_CallMethod(array.get(), "copy", nullptr); })
             : array.release();
}

// What a NumPy function computed from tensors comes back as a tensor.
TD_METHOD(__array_wrap__, {"array", Kind::kObject}, {"context=None", Kind::kObject, kNone},
          {"return_scalar=False", Kind::kObject, kNone}) {
  if (!is_numpy_array(a.object(1))) return new_ref(a.object(1));
  return wrap(tensor_from_buffer(a.object(1), false));
}

TD_METHOD(__dlpack__, {"stream=-1", Kind::kObject, kOnly | kNone},
          {"max_version=None", Kind::kObject, kOnly | kNone},
          {"dl_device=None", Kind::kObject, kOnly | kNone},
          {"copy=None", Kind::kBool, kOnly | kNone}) {
  const auto object = [&](int i) { return a.present(i) ? a.object(i) : nullptr; };
  return to_dlpack(a.tensor(0), a.object(1), object(2), object(3), object(4));
}
TD_METHOD(__dlpack_device__) { return dlpack_device_pair(a.tensor(0)); }

PyObject* reversed(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const Tensor& x = tensor_of(self);
  if (x.dim() == 0) return new_ref(self);
  return call_python([&] { return PyObject_CallMethod(self, "flip", "i", 0); });
  TD_PYTHON_CATCH(nullptr)
}

PyObject* to_complex_number(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const Tensor& x = tensor_of(self);
  if (x.numel() != 1)
    raise_python(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  const std::complex<double> value = x.item_scalar().to_complex();
  return PyComplex_FromDoubles(value.real(), value.imag());
  TD_PYTHON_CATCH(nullptr)
}

PyObject* format(PyObject* self, PyObject* spec) {
  TD_PYTHON_TRY
  if (!PyUnicode_Check(spec))
    raise_python(PyExc_TypeError, "__format__() argument must be str, not {}",
                 spec == Py_None ? "None" : type_name(spec));
  const Tensor& x = tensor_of(self);
  if (x.dim() == 0 && has_memory(x.device()) && is_exact_tensor(self)) {
    return PyObject_Format(PyRef::check(wrap(x.item_scalar())).get(), spec);
  }
  if (PyUnicode_GET_LENGTH(spec) > 0) {
    raise_python(PyExc_TypeError, "unsupported format string passed to Tensor.__format__");
  }
  return PyObject_Str(self);
  TD_PYTHON_CATCH(nullptr)
}

// --- conversions ---

PyObject* converted(Arguments& a, OptDType dtype, OptDevice device, bool copy,
                    OptMemoryFormat format, bool non_blocking = false) {
  const Tensor& x = a.tensor(0);
  const DType target = dtype.value_or(x.dtype());
  const bool moves = device && !(resolved(*device) == x.device());
  const bool relayouts = format && *format != MemoryFormat::kPreserve && !x.is_contiguous(*format);
  if (!copy && !moves && !relayouts && target == x.dtype()) return a.return_argument(0);
  return wrap(unlocked(a, [&] {
    if (moves)
      return op::to_device(target == x.dtype() ? x : op::to_dtype(x, target, false, std::nullopt),
                           *device, non_blocking);
    return op::to_dtype(x, target, /*copy=*/copy || relayouts, format);
  }));
}

constexpr Param kCommon[] = {{"non_blocking=False", Kind::kBool},
                             {"copy=False", Kind::kBool},
                             {"memory_format=None", Kind::kMemoryFormat, kOnly | kNone}};
constinit Param to_params_dtype[] = {
    {"self", Kind::kTensor}, {"dtype", Kind::kDType}, kCommon[0], kCommon[1], kCommon[2]};
constinit Param to_params_device[] = {{"self", Kind::kTensor},
                                      {"device=None", Kind::kDevice, kNone},
                                      {"dtype=None", Kind::kDType, kNone},
                                      kCommon[0],
                                      kCommon[1],
                                      kCommon[2]};
constinit Param to_params_other[] = {
    {"self", Kind::kTensor}, {"other/tensor", Kind::kTensor}, kCommon[0], kCommon[1], kCommon[2]};
const Signature to_signatures[] = {{to_params_dtype}, {to_params_device}, {to_params_other}};
const Function to_function = {"to", "Tensor.to", to_signatures, 3, true};

PyObject* method_to(PyObject* self, FastArgs args, Py_ssize_t nargs, PyObject* kwnames) {
  TD_PYTHON_TRY
  Arguments a(to_function, self, args, nargs, kwnames);
  if (a.overridden()) [[unlikely]]
    return a.call_override();
  switch (a.overload()) {
    case 0:
      return converted(a, a.dtype(1), {}, a.boolean(3, false), a.opt_memory_format(4));
    case 1:
      return converted(a, a.opt_dtype(2), a.opt_device(1), a.boolean(4, false),
                       a.opt_memory_format(5), a.boolean(3, false));
    default:
      return converted(a, a.tensor(1).dtype(), a.tensor(1).device(), a.boolean(3, false),
                       a.opt_memory_format(4), a.boolean(2, false));
  }
  TD_PYTHON_CATCH(nullptr)
}

#define TD_CAST(name, dtype)                                                    \
  TD_METHOD(name, {"memory_format=None", Kind::kMemoryFormat, kOnly | kNone}) { \
    return converted(a, dtype, {}, false, a.opt_memory_format(1));              \
  }
TD_CAST(float, DType::kFloat32)
TD_CAST(double, DType::kFloat64)
TD_CAST(half, DType::kFloat16)
TD_CAST(bfloat16, DType::kBFloat16)
TD_CAST(long, DType::kInt64)
TD_CAST(int, DType::kInt32)
TD_CAST(short, DType::kInt16)
TD_CAST(char, DType::kInt8)
TD_CAST(byte, DType::kUInt8)
TD_CAST(bool, DType::kBool)
TD_CAST(chalf, DType::kComplex32)
TD_CAST(cfloat, DType::kComplex64)
TD_CAST(cdouble, DType::kComplex128)
#undef TD_CAST

TD_METHOD(cpu, {"memory_format=None", Kind::kMemoryFormat, kOnly | kNone}) {
  return converted(a, {}, Device(), false, a.opt_memory_format(1));
}
TD_METHOD(cuda, {"device=None", Kind::kDevice, kNone}, {"non_blocking=False", Kind::kBool},
          {"memory_format=None", Kind::kMemoryFormat, kOnly | kNone}) {
  const Device device = a.opt_device(1).value_or(DeviceType::kCUDA);
  if (device.type != DeviceType::kCUDA)
    raise_python(PyExc_RuntimeError, "Invalid device, must be cuda device");
  return converted(a, {}, device, false, a.opt_memory_format(3), a.boolean(2, false));
}
TD_METHOD(pin_memory, {"device=None", Kind::kDevice, kNone}) {
  const Tensor& x = a.tensor(0);
  return is_pinned(x) ? a.return_argument(0) : wrap(unlocked(a, [&] { return pinned(x); }));
}
TD_METHOD(record_stream, {"s", Kind::kObject}) {
  const Tensor& x = a.tensor(0);
  if (x.device().type != DeviceType::kCUDA)
    raise_python(PyExc_RuntimeError,
                 "record_stream: expected a tensor on a CUDA device, got one on {}", x.device());
  const PyRef id = PyRef::check(PyObject_GetAttrString(a.object(1), "stream_id"));
  const PyRef index = PyRef::check(PyObject_GetAttrString(a.object(1), "device_index"));
  const cuda::Stream stream{static_cast<int>(to_int(index.get())), to_int(id.get())};
  cuda::record_stream(x.storage()->data(), x.device().index, stream);
  Py_RETURN_NONE;
}
TD_METHOD(share_memory_) {
  if (!a.tensor(0).device().is_cpu()) return a.return_argument(0);
  share_memory(*a.tensor(0).storage());
  PyRef::check(PyImport_ImportModule("taeda.multiprocessing"));  // knows how to send it
  return new_ref(a.object(0));
}
TD_METHOD(type_as, {"other", Kind::kTensor}) {
  return converted(a, a.tensor(1).dtype(), a.tensor(1).device(), false, {});
}

// --- subclasses ---

// A tensor that has no Python object yet, on the same memory; modes, which would give it one, do
// not see how it is made.
Tensor unattached(const Tensor& x) {
  if (!x.impl()->python_object()) return x;
  const ExcludeKeys unseen(KeySet(Key::kPython));
  return op::alias(x);
}

PyObject* as_subclass(PyObject* self, PyObject* type) {
  TD_PYTHON_TRY
  if (!PyType_Check(type) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type)) {
    raise_python(PyExc_TypeError, "cls must be a type derived from Tensor (got {})",
                 type_name(type));
  }
  return wrap_as(reinterpret_cast<PyTypeObject*>(type), unattached(tensor_of(self)));
  TD_PYTHON_CATCH(nullptr)
}

// Tensor._make_subclass(cls, data, require_grad=False): a leaf of class `cls` on data's memory.
PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"cls", "data", "require_grad", nullptr};
  PyObject *type, *data;
  int require_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p:_make_subclass", const_cast<char**>(names),
                                   &type, &data, &require_grad)) {
    return nullptr;
  }
  if (!PyType_Check(type) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type)) {
    raise_python(PyExc_TypeError, "cls must be a type derived from Tensor (got {})",
                 type_name(type));
  }
  if (!is_tensor(data))
    raise_python(PyExc_TypeError, "_make_subclass(): argument 'data' must be Tensor, not {}",
                 type_name(data));
  Tensor leaf = tensor_of(data).variable_data();
  if (require_grad) leaf.requires_grad_();
  return wrap_as(reinterpret_cast<PyTypeObject*>(type), std::move(leaf));
  TD_PYTHON_CATCH(nullptr)
}

// A result whose items have names, as of max(dim).
bool is_named_result(PyObject* object) {
  return PyTuple_Check(object) &&
         PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "n_sequence_fields");
}

PyObject* convert_result(PyObject* result, PyObject* type) {
  const RecursionGuard guard(" while a result is converted to a subclass of Tensor");
  if (is_tensor(result)) {
    if (PyObject_TypeCheck(result, reinterpret_cast<PyTypeObject*>(type))) return new_ref(result);
    return PyRef::check(as_subclass(result, type)).release();
  }
  const bool named = is_named_result(result);
  if (named || PyTuple_CheckExact(result) || PyList_CheckExact(result)) {
    const PyRef items = PyRef::check(PySequence_Tuple(result));  // a list may change meanwhile
    const Py_ssize_t size = PyTuple_GET_SIZE(items.get());
    PyRef list = PyRef::check(PyList_New(size));
    for (Py_ssize_t i = 0; i < size; i++) {
      PyList_SET_ITEM(list.get(), i, convert_result(PyTuple_GET_ITEM(items.get(), i), type));
    }
    if (named)
      return call_python([&] {
        return PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(result)), list.get());
      });
    return PyTuple_CheckExact(result) ? PyList_AsTuple(list.get()) : list.release();
  }
  return new_ref(result);
}

// The default __torch_function__: runs the operator, results take the subclass.
PyObject* torch_function(PyObject* type, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject *function, *types, *call_args = nullptr, *call_kwargs = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:__torch_function__",
                                   const_cast<char**>(names), &function, &types, &call_args,
                                   &call_kwargs)) {
    return nullptr;
  }
  PyRef all = PyRef::check(PySequence_Tuple(types));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all.get()); i++) {
    const int related = PyObject_IsSubclass(type, PyTuple_GET_ITEM(all.get(), i));
    check_status(related);
    if (!related) Py_RETURN_NOTIMPLEMENTED;
  }
  {
    DisableTorchFunctionSubclass disable;
    const PyRef result = call_with(function, call_args, call_kwargs);
    if (type == reinterpret_cast<PyObject*>(tensor_type) || keeps_plain_result(function))
      return new_ref(result.get());
    return convert_result(result.get(), type);
  }
  TD_PYTHON_CATCH(nullptr)
}

// --- autograd ---

TD_METHOD(requires_grad_, {"requires_grad=True", Kind::kBool}) {
  const_cast<Tensor&>(a.tensor(0)).requires_grad_(a.boolean(1, true));
  return a.return_argument(0);
}
TD_METHOD(retain_grad) {
  const_cast<Tensor&>(a.tensor(0)).retain_grad();
  Py_RETURN_NONE;
}
TD_METHOD(register_hook, {"hook", Kind::kObject}) {
  PyObject* handle = register_tensor_hook(a.tensor(0), a.object(1));
  track_tensor(a.object(0));
  return handle;
}
TD_METHOD(register_post_accumulate_grad_hook, {"hook", Kind::kObject}) {
  PyObject* handle = register_post_accumulate_hook(a.tensor(0), a.object(1));
  track_tensor(a.object(0));
  return handle;
}

#undef TD_METHOD

template <class F>
PyMethodDef entry(const char* name, F* function, const char* doc = nullptr) {
  return {name, as_function(function), METH_FASTCALL | METH_KEYWORDS, doc};
}

#define TD_ENTRY(name, doc) entry(#name, method_##name, doc)
// A method that converts to a dtype, with an example.
#define TD_CONVERSION(NAME, DTYPE, VALUES, SHOWN)                                          \
  TD_ENTRY(NAME,                                                                           \
           #NAME "(memory_format=torch.preserve_format) -> Tensor\n\nThe tensor as " DTYPE \
                 "; itself where it is that.\n\n>>> torch.tensor(" VALUES ")." #NAME "()\n" SHOWN)

PyMethodDef methods[] = {
    TD_ENTRY(size, "size(dim=None) -> Size or int\n\nThe sizes, or the size of one dimension."),
    TD_ENTRY(
        stride,
        "stride(dim=None) -> tuple or int\n\nElements between neighbours along each dimension."),
    TD_ENTRY(is_contiguous,
             "is_contiguous(*, memory_format=torch.contiguous_format) -> bool\n\nWhether the "
             "elements lie in memory in the order of their indices, without gaps."),
    TD_ENTRY(dim, "dim() -> int\n\nThe number of dimensions."),
    entry("ndimension", method_dim, "ndimension() -> int\n\nThe number of dimensions."),
    TD_ENTRY(numel, "numel() -> int\n\nThe number of elements."),
    entry("nelement", method_numel, "nelement() -> int\n\nThe number of elements."),
    TD_ENTRY(element_size, "element_size() -> int\n\nBytes of one element."),
    TD_ENTRY(
        storage_offset,
        "storage_offset() -> int\n\nWhere the first element lies in the storage, in elements."),
    TD_ENTRY(data_ptr, "data_ptr() -> int\n\nThe address of the first element."),
    TD_ENTRY(is_floating_point,
             "is_floating_point() -> bool\n\nWhether the elements are float16, bfloat16, float32 "
             "or float64."),
    TD_ENTRY(is_complex, "is_complex() -> bool\n\nWhether the elements are complex."),
    TD_ENTRY(is_signed, "is_signed() -> bool\n\nWhether the elements can be negative."),
    TD_ENTRY(is_inference,
             "is_inference() -> bool\n\nWhether the tensor was made under inference_mode."),
    TD_ENTRY(is_conj,
             "is_conj() -> bool\n\nWhether the elements are the conjugates of what lies in memory: "
             "conj() makes such views."),
    TD_ENTRY(
        is_neg,
        "is_neg() -> bool\n\nWhether the elements are the negatives of what lies in memory, as "
        "of the imaginary part of a conjugate."),
    TD_ENTRY(_set_conj, nullptr),
    TD_ENTRY(_set_neg, nullptr),
    TD_ENTRY(is_pinned, "is_pinned() -> bool\n\nWhether the memory is pinned for devices."),
    TD_ENTRY(is_shared, "is_shared() -> bool\n\nWhether other processes can be given this memory."),
    TD_ENTRY(get_device, "get_device() -> int\n\n-1: the cpu."),
    TD_ENTRY(untyped_storage,
             "untyped_storage() -> UntypedStorage\n\nThe bytes that views of this tensor share."),
    TD_ENTRY(is_set_to,
             "is_set_to(tensor) -> bool\n\nWhether both show the same memory in the same layout."),
    TD_ENTRY(item,
             "item() -> number\n\nThe value of a one-element tensor as a Python number.\n\n"
             ">>> torch.tensor([2.5]).item()\n2.5"),
    {"tolist", tolist, METH_NOARGS, "tolist() -> list or number\n\nThe values as nested lists."},
    TD_ENTRY(numpy, "numpy(*, force=False) -> numpy.ndarray\n\nAn array on the same memory."),
    TD_ENTRY(__array__, nullptr),
    TD_ENTRY(__array_wrap__, nullptr),
    TD_ENTRY(__dlpack__, nullptr),
    TD_ENTRY(__dlpack_device__, nullptr),
    {"__reversed__", reversed, METH_NOARGS, nullptr},
    {"__complex__", to_complex_number, METH_NOARGS, nullptr},
    {"__format__", format, METH_O, nullptr},
    TD_ENTRY(to,
             "to(dtype | device | other, non_blocking=False, copy=False, *, memory_format=None) -> "
             "Tensor\n\n"
             "The tensor as another dtype or on another device; itself where nothing changes.\n\n"
             ">>> torch.tensor([1, 2]).to(torch.float64)\ntensor([1., 2.], dtype=torch.float64)"),
    TD_CONVERSION(float, "float32", "[1, 0]", "tensor([1., 0.])"),
    TD_CONVERSION(double, "float64", "[1, 0]", "tensor([1., 0.], dtype=torch.float64)"),
    TD_CONVERSION(half, "float16", "[1, 0]", "tensor([1., 0.], dtype=torch.float16)"),
    TD_CONVERSION(bfloat16, "bfloat16", "[1, 0]", "tensor([1., 0.], dtype=torch.bfloat16)"),
    TD_CONVERSION(long, "int64", "[1.5, 0]", "tensor([1, 0])"),
    TD_CONVERSION(int, "int32", "[1.5, 0]", "tensor([1, 0], dtype=torch.int32)"),
    TD_CONVERSION(short, "int16", "[1.5, 0]", "tensor([1, 0], dtype=torch.int16)"),
    TD_CONVERSION(char, "int8", "[1.5, 0]", "tensor([1, 0], dtype=torch.int8)"),
    TD_CONVERSION(byte, "uint8", "[1.5, 0]", "tensor([1, 0], dtype=torch.uint8)"),
    TD_CONVERSION(bool, "bool", "[1.5, 0]", "tensor([ True, False])"),
    TD_CONVERSION(chalf, "complex32", "[1.5, 0]",
                  "tensor([1.5000+0.j, 0.0000+0.j], dtype=torch.complex32)"),
    TD_CONVERSION(cfloat, "complex64", "[1.5, 0]", "tensor([1.5000+0.j, 0.0000+0.j])"),
    TD_CONVERSION(cdouble, "complex128", "[1.5, 0]",
                  "tensor([1.5000+0.j, 0.0000+0.j], dtype=torch.complex128)"),
    TD_ENTRY(cpu,
             "cpu(memory_format=torch.preserve_format) -> Tensor\n\nThe tensor in main memory; "
             "itself if it is there."),
    TD_ENTRY(cuda,
             "cuda(device=None) -> Tensor\n\nThe tensor on a CUDA device; RuntimeError where there "
             "is none."),
    TD_ENTRY(pin_memory,
             "pin_memory() -> Tensor\n\nA copy in pinned memory, which devices copy from while the "
             "program goes on; itself if it is there.\nRuntimeError where there is no device."),
    TD_ENTRY(record_stream,
             "record_stream(s) -> None\n\nThe stream `s` uses the tensor as well: once freed, its "
             "memory waits for that stream."),
    TD_ENTRY(
        share_memory_,
        "share_memory_() -> Tensor\n\nMoves the tensor's memory, with all its views, to memory "
        "that forked processes\nand those it is sent to share."),
    TD_ENTRY(type_as,
             "type_as(other) -> Tensor\n\nThe tensor with the dtype of another; itself where that "
             "is its own."),
    {"as_subclass", as_subclass, METH_O,
     "as_subclass(cls) -> Tensor\n\nThe same data as an instance of a subclass."},
    {"_make_subclass", as_function(make_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     nullptr},
    {"__torch_function__", as_function(torch_function), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     nullptr},
    TD_ENTRY(
        requires_grad_,
        "requires_grad_(requires_grad=True) -> Tensor\n\nMakes a leaf record gradients, or stop."),
    TD_ENTRY(retain_grad, "retain_grad()\n\nMakes backward keep the gradient of a non-leaf."),
    TD_ENTRY(register_hook,
             "register_hook(hook) -> handle\n\nCalls hook(grad) when the gradient is computed."),
    TD_ENTRY(register_post_accumulate_grad_hook,
             "register_post_accumulate_grad_hook(hook) -> handle\n\nCalls hook(tensor) after "
             "backward has accumulated into this leaf's grad."),
    {nullptr, nullptr, 0, nullptr},
};
#undef TD_ENTRY

}  // namespace

void add_tensor_methods(PyTypeObject* type) {
  add_signatures(methods, true);
  for (PyMethodDef* entry = methods; entry->ml_name; entry++) {
    PyMethodDef& def = *entry;
    PyRef method;
    if (def.ml_flags & METH_CLASS)
      method = PyRef::check(PyDescr_NewClassMethod(type, &def));
    else if (def.ml_flags & METH_STATIC)
      method = PyRef::check(PyStaticMethod_New(PyRef::check(PyCFunction_New(&def, nullptr)).get()));
    else
      method = PyRef::check(PyDescr_NewMethod(type, &def));
    check_status(PyDict_SetItemString(type->tp_dict, def.ml_name, method.get()));
  }
  check_status(PyDict_SetItemString(type->tp_dict, "__array_priority__",
                                    PyRef::check(PyLong_FromLong(1000)).get()));
  PyType_Modified(type);
}

}  // namespace taeda::python
