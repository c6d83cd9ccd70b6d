#include "python/interop.h"

#include <cstring>
#include <memory>

#include "op/as_strided.h"
#include "op/clone.h"
#include "op/contiguous.h"
#include "op/detach.h"
#include "python/arguments.h"
#include "python/dlpack.h"
#include "python/module.h"
#include "python/storage_object.h"
#include "python/tensor_slots.h"
#include "python/wrap.h"
#include "taeda/warning.h"

namespace taeda::python {
namespace {

// --- element types as the struct module and PEP 3118 write them ---

static_assert(sizeof(long) == 8, "the table of dtypes calls int64 'l' and NumPy's number 7");

// The integer type of a format's letter, whose case is its sign and whose size the platform's.
OptDType integer_format(char letter, Py_ssize_t itemsize) {
  constexpr std::string_view kLetters = "bhilqn";
  const auto lower = static_cast<char>(letter | 0x20);
  if (letter == 'c') return DType::kUInt8;
  if (kLetters.find(lower) == std::string_view::npos) return {};
  for (int i = 0; i < kNumDTypes; i++) {
    const DTypeInfo& dtype = kDTypes[i];
    if (dtype.kind == DTypeKind::kInteger && dtype.bytes == itemsize &&
        dtype.is_signed == (letter == lower))
      return static_cast<DType>(i);
  }
  return {};
}

OptDType format_dtype(std::string_view format, Py_ssize_t itemsize) {
  if (format.find_first_of("@=<") == 0) format.remove_prefix(1);
  for (int i = 0; i < kNumDTypes; i++) {
    const DTypeInfo& dtype = kDTypes[i];
    if (dtype.kind != DTypeKind::kInteger && !format.empty() && dtype.buffer == format)
      return static_cast<DType>(i);
  }
  return format.size() == 1 ? integer_format(format[0], itemsize) : OptDType();
}

// --- memory of others as a tensor ---

struct BufferOwner {
  Py_buffer buffer;
};

void release_buffer(void* context) {
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  BufferOwner* owner = static_cast<BufferOwner*>(context);
  PyBuffer_Release(&owner->buffer);
  delete owner;
}

struct BufferGuard {
  BufferOwner* owner;
  ~BufferGuard() {
    if (!owner) return;
    PyBuffer_Release(&owner->buffer);
    delete owner;
  }
};

// An attribute of an attribute; null where there is none.
PyRef nested_attribute(PyObject* object, std::initializer_list<const char*> names) {
  PyRef found = PyRef::share(object);
  for (const char* name : names) {
    found = PyRef::adopt(PyObject_GetAttrString(found.get(), name));
    if (found) continue;
    PyErr_Clear();
    break;
  }
  return found;
}

[[noreturn]] void fail_array_type(PyObject* object, const char* format) {
  const PyRef name = nested_attribute(object, {"dtype", "type", "__name__"});
  const std::string shown = name ? "numpy." + std::string(utf8(name.get()))
                                 : "format " + std::string(format ? format : "?");
  raise_python(
      PyExc_TypeError,
      "can't convert np.ndarray of type {}. The only supported types are: float64, "
      "float32, float16, "
      "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
      shown);
}

// Whether a NumPy scalar is a number. Times and records export their bytes instead of a value,
// without strides.
bool is_number(PyObject* scalar) {
  const PyRef kind = nested_attribute(scalar, {"dtype", "kind"});
  if (!kind || !PyUnicode_Check(kind.get())) return false;
  return std::string_view("biufc").find(utf8(kind.get())) != std::string_view::npos;
}

Tensor make_alias(Ref<Storage> storage, DType dtype, IntSpan sizes, IntSpan strides) {
  const Device device = storage->device();
  Ref<TensorImpl> impl(new TensorImpl(std::move(storage), dtype, device));
  impl->set_layout(sizes, strides, 0);
  return Tensor(std::move(impl));
}

// Once a program for arrays, once for buffers; every time after set_warn_always(True).
void warn_read_only(bool is_array) {
  static bool warned[2] = {false, false};
  if (std::exchange(warned[is_array], true) && !warn_always) return;
  const char* const array =
      "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. "
      "This means writing to this tensor will result in undefined behavior. You may want to copy "
      "the array to protect its data or make it writable before converting it to a tensor. This "
      "type of warning will be suppressed for the rest of this program.";
  const char* const buffer =
      "The given buffer is not writable, and PyTorch does not support non-writable tensors. This "
      "means you can write to the underlying (supposedly non-writable) buffer using the tensor. "
      "You may want to copy the buffer to protect its data or make it writable before converting "
      "it to a tensor. This type of warning will be suppressed for the rest of this program.";
  check_status(PyErr_WarnEx(PyExc_UserWarning, is_array ? array : buffer, 1));
}

// --- the buffer protocol of tensors ---

struct Export {
  Tensor tensor;
  DimVector shape, strides;
};

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  buffer->obj = nullptr;
  TD_PYTHON_TRY
  const Tensor& x = tensor_of(self);
  const std::string_view format = dtype_info(x.dtype()).buffer;
  if (format.empty())
    raise_python(PyExc_BufferError, "no buffer format for torch.{}", to_text(x.dtype()));
  if (!x.device().is_cpu())
    raise_python(PyExc_BufferError, "only tensors on the cpu have memory that Python can see");
  if (x.requires_grad()) {
    raise_python(PyExc_BufferError,
                 "Tensor requires grad. Use tensor.detach() to export its memory.");
  }
  if (!(flags & PyBUF_STRIDES) && !x.is_contiguous()) {
    raise_python(PyExc_BufferError,
                 "the tensor is not contiguous and the consumer wants no strides");
  }
  if (x.is_conj() || x.is_neg())
    raise_python(PyExc_BufferError, "the memory holds the tensor's {}: use tensor.resolve_{}()",
                 x.is_conj() ? "conjugates" : "negatives", x.is_conj() ? "conj" : "neg");
  if ((flags & PyBUF_WRITABLE) && !x.storage()->writable())
    raise_python(PyExc_BufferError, "the tensor is read-only");
  x.storage()->forbid_resize();
  auto exported = std::make_unique<Export>();
  exported->tensor = x;
  exported->shape = x.sizes();
  exported->strides = x.strides();
  for (int64_t& stride : exported->strides) stride *= x.itemsize();
  static char nothing[16];
  buffer->buf = x.data_ptr() ? x.data_ptr() : nothing;
  buffer->len = static_cast<Py_ssize_t>(x.nbytes());
  buffer->itemsize = static_cast<Py_ssize_t>(x.itemsize());
  buffer->readonly = !x.storage()->writable();
  buffer->ndim = static_cast<int>(x.dim());
  buffer->format = flags & PyBUF_FORMAT ? const_cast<char*>(format.data()) : nullptr;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  buffer->shape =
      flags & PyBUF_ND ? reinterpret_cast<Py_ssize_t*>(exported->shape.data()) : nullptr;
  buffer->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                        ? reinterpret_cast<Py_ssize_t*>(exported->strides.data())
                        : nullptr;
  buffer->suboffsets = nullptr;
  buffer->internal = exported.release();
  buffer->obj = new_ref(self);
  return 0;
  TD_PYTHON_CATCH(-1)
}

void release_export(PyObject*, Py_buffer* buffer) { delete static_cast<Export*>(buffer->internal); }

// --- functions of the module ---

constinit Param kFromNumpyParams[] = {{"ndarray", Kind::kObject}};
const Signature kFromNumpySignatures[] = {{kFromNumpyParams}};
const Function kFromNumpy = {"from_numpy", "torch.from_numpy", kFromNumpySignatures, 1, false};

PyObject* from_numpy(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  TD_PYTHON_TRY
  Arguments a(kFromNumpy, self, args, nargs, kwnames);
  if (a.overridden()) [[unlikely]]
    return a.call_override();
  PyObject* array = a.object(0);
  if (!is_numpy_array(array))
    raise_python(PyExc_TypeError, "expected np.ndarray (got {})", type_name(array));
  return wrap(tensor_from_buffer(array, /*copy=*/false));
  TD_PYTHON_CATCH(nullptr)
}

constinit Param kFromBufferParams[] = {{"buffer", Kind::kObject},
                                       {"dtype", Kind::kDType, Param::kKeywordOnly},
                                       {"count=-1", Kind::kInt, Param::kKeywordOnly},
                                       {"offset=0", Kind::kInt, Param::kKeywordOnly},
                                       {"requires_grad=False", Kind::kBool, Param::kKeywordOnly}};
const Signature kFromBufferSignatures[] = {{kFromBufferParams}};
const Function kFromBuffer = {"frombuffer", "torch.frombuffer", kFromBufferSignatures, 1, false};

PyObject* frombuffer(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  TD_PYTHON_TRY
  Arguments a(kFromBuffer, self, args, nargs, kwnames);
  PyObject* exporter = a.object(0);
  if (!PyObject_CheckBuffer(exporter)) {
    raise_python(PyExc_ValueError, "object does not implement Python buffer protocol.");
  }
  const DType dtype = a.dtype(1);
  const int64_t count = a.integer(2, -1), offset = a.integer(3, 0), size = item_size(dtype);
  const Ref<Storage> whole = storage_from_buffer(exporter, 0, -1);
  const int64_t available = whole->nbytes();
  if (available == 0 || count == 0) {
    raise_python(PyExc_ValueError, "both buffer length ({}) and count ({}) must not be 0",
                 available, count);
  }
  if (offset < 0 || offset >= available) {
    raise_python(PyExc_ValueError,
                 "offset ({} bytes) must be non-negative and no greater than buffer length ({} "
                 "bytes) minus 1",
                 offset, available);
  }
  if (count < 0 && (available - offset) % size != 0) {
    raise_python(
        PyExc_ValueError,
        "buffer length ({} bytes) after offset ({} bytes) must be a multiple of element size ({})",
        available - offset, offset, size);
  }
  const int64_t elements = count < 0 ? (available - offset) / size : count;
  if (elements > (available - offset) / size) {
    raise_python(PyExc_ValueError,
                 "requested buffer length ({} * {} bytes) after offset ({} bytes) must not be "
                 "greater than actual buffer "
                 "length ({} bytes)",
                 elements, size, offset, available);
  }
  if (!whole->writable()) warn_read_only(/*is_array=*/false);
  const Ref<Storage> storage = storage_from_buffer(exporter, offset, elements * size);
  TD_CHECK_VALUE(
      reinterpret_cast<uintptr_t>(storage->data()) % static_cast<uintptr_t>(size > 8 ? 8 : size) ==
          0,
      "frombuffer: offset {} does not align the memory to elements of {} bytes", offset, size);
  Tensor result = make_alias(storage, dtype, {elements}, {1});
  if (a.boolean(4, false)) result.requires_grad_();
  return wrap(std::move(result));
  TD_PYTHON_CATCH(nullptr)
}

constinit Param kFromDlpackParams[] = {
    {"ext_tensor", Kind::kObject},
    {"device=None", Kind::kObject, Param::kKeywordOnly | Param::kNone},
    {"copy=None", Kind::kObject, Param::kKeywordOnly | Param::kNone}};
const Signature kFromDlpackSignatures[] = {{kFromDlpackParams}};
const Function kFromDlpack = {"from_dlpack", "torch.from_dlpack", kFromDlpackSignatures, 1, false};

PyObject* take_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  TD_PYTHON_TRY
  Arguments a(kFromDlpack, self, args, nargs, kwnames);
  const auto object = [&](int i) { return a.present(i) ? a.object(i) : nullptr; };
  return wrap(from_dlpack(a.object(0), object(1), object(2)));
  TD_PYTHON_CATCH(nullptr)
}

// _tensor_from_storage(storage, dtype, offset, size, stride): a tensor on a storage, inside its
// bounds.
PyObject* from_storage(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *storage, *dtype, *sizes, *strides;
  long long offset;
  if (!PyArg_ParseTuple(args, "OOLOO:_tensor_from_storage", &storage, &dtype, &offset, &sizes,
                        &strides))
    return nullptr;
  if (!is_storage(storage) || !is_dtype(dtype)) {
    raise_python(PyExc_TypeError,
                 "_tensor_from_storage(): expected a storage and a dtype, got {} and {}",
                 type_name(storage), type_name(dtype));
  }
  const Ref<Storage>& owner = storage_of(storage);
  const DimVector shape = to_ints(sizes), steps = to_ints(strides);
  TD_CHECK(shape.size() == steps.size(), "mismatch in length of strides and shape");
  const DType type = to_dtype(dtype);
  Tensor base = make_alias(owner, type, {owner->nbytes() / item_size(type)}, {1});
  return wrap(op::detach(op::as_strided(base, shape, steps, OptInt(offset))));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"from_numpy", as_function(from_numpy), METH_FASTCALL | METH_KEYWORDS,
     "from_numpy(ndarray) -> Tensor\n\nA tensor on the memory of a NumPy array: changes of one are "
     "seen in the other."},
    {"frombuffer", as_function(frombuffer), METH_FASTCALL | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor\n\n"
     "A 1-d tensor on the memory of an object with the buffer protocol."},
    {"from_dlpack", as_function(take_dlpack), METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor\n\nA tensor on memory shared "
     "through DLPack."},
    {"_tensor_from_storage", from_storage, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Tensor tensor_from_buffer(PyObject* object, bool copy) {
  if (is_numpy_scalar(object) && !is_number(object)) fail_array_type(object, nullptr);
  auto owner = std::make_unique<BufferOwner>();
  if (PyObject_GetBuffer(object, &owner->buffer, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
    if (!is_numpy_array(object) && !is_numpy_scalar(object)) throw PythonError();
    PyErr_Clear();
    fail_array_type(object, nullptr);
  }
  BufferGuard guard{owner.release()};
  const Py_buffer& buffer = guard.owner->buffer;
  const char* format = buffer.format ? buffer.format : "B";
  if (*format == '>' || *format == '!') {
    raise_python(PyExc_ValueError,
                 "given numpy array has byte order different from the native byte order. "
                 "Conversion between byte orders "
                 "is currently not supported.");
  }
  const OptDType dtype = format_dtype(format, buffer.itemsize);
  if (!dtype) fail_array_type(object, format);
  DimVector sizes, strides;
  int64_t elements = 1;
  for (int i = 0; i < buffer.ndim; i++) {
    const int64_t size = buffer.shape[i], step = buffer.strides[i];
    if (step < 0 && size > 1) {
      raise_python(PyExc_ValueError,
                   "At least one stride in the given numpy array is negative, and tensors with "
                   "negative strides are not "
                   "currently supported. (You can probably work around this by making a copy of "
                   "your array  with "
                   "array.copy().) ");
    }
    if (step % buffer.itemsize != 0) {
      raise_python(PyExc_ValueError,
                   "given numpy array strides not a multiple of the element byte size. Copy the "
                   "numpy array to "
                   "reallocate the memory.");
    }
    sizes.push_back(size);
    strides.push_back(size > 1 || step > 0 ? step / buffer.itemsize : 1);
    elements *= size;
  }
  if (buffer.readonly && !copy) warn_read_only(/*is_array=*/true);
  int64_t reach = elements > 0 ? 1 : 0;
  for (size_t i = 0; i < sizes.size() && elements > 0; i++) reach += (sizes[i] - 1) * strides[i];
  const bool read_only = buffer.readonly;
  Ref<Storage> storage =
      Storage::wrap(buffer.buf, reach * buffer.itemsize, Device(), release_buffer, guard.owner);
  guard.owner = nullptr;
  if (read_only) storage->set_read_only();
  Tensor shared = make_alias(std::move(storage), *dtype, sizes, strides);
  return copy ? op::contiguous(op::clone(shared, std::nullopt), MemoryFormat::kContiguous) : shared;
}

PyObject* tensor_from_array(PyObject* array) {
  TD_PYTHON_TRY
  return wrap(tensor_from_buffer(array, /*copy=*/false));
  TD_PYTHON_CATCH(nullptr)
}

// The functions of NumPy's C interface that are used here, by their indices in its table, which
// NumPy keeps from version to version; so its headers are not needed, nor NumPy before this call.
struct NumPyApi {
  PyObject* array_type;
  PyObject* (*make)(PyObject* type, int ndim, const Py_ssize_t* sizes, int element,
                    const Py_ssize_t* strides, void* data, int itemsize, int flags, PyObject*);
  int (*set_base)(PyObject* array, PyObject* base);  // takes over the reference to `base`
};

const NumPyApi& numpy_api() {
  static NumPyApi api = {};
  if (!api.array_type) {
    PyRef module = PyRef::check(PyImport_ImportModule("numpy"));
    for (const char* name : {"_core", "core"}) {
      PyObject* core = PyObject_GetAttrString(module.get(), name);
      if (!core) {
        PyErr_Clear();
        continue;
      }
      module = PyRef::adopt(core);
      break;
    }
    PyRef extension = PyRef::check(PyObject_GetAttrString(module.get(), "multiarray"));
    PyRef capsule = PyRef::check(PyObject_GetAttrString(extension.get(), "_ARRAY_API"));
    void** table = static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr));
    if (!table) throw PythonError();
    api.make = reinterpret_cast<decltype(api.make)>(table[93]);
    api.set_base = reinterpret_cast<decltype(api.set_base)>(table[282]);
    api.array_type = static_cast<PyObject*>(table[2]);
  }
  return api;
}

// An object that keeps a storage alive.
PyObject* storage_keeper(Ref<Storage> storage) {
  static constexpr const char* kName = "taeda.storage";
  PyObject* keeper = PyCapsule_New(storage.get(), kName, [](PyObject* self) {
    Ref<Storage>::adopt(static_cast<Storage*>(PyCapsule_GetPointer(self, kName)));
  });
  if (!keeper) throw PythonError();
  storage.detach();
  return keeper;
}

PyObject* array_from_tensor(const Tensor& x) {
  const int type = dtype_info(x.dtype()).numpy;
  if (type < 0)
    raise_python(PyExc_TypeError, "Got unsupported ScalarType {}", scalar_type_name(x.dtype()));
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  DimVector strides = x.strides();
  for (int64_t& stride : strides) stride *= x.itemsize();
  static char nothing[16];
  constexpr int kAligned = 0x100, kWriteable = 0x400;
  const NumPyApi& numpy = numpy_api();
  PyRef keeper = PyRef::check(storage_keeper(x.storage()));
  x.storage()->forbid_resize();
  PyRef array = PyRef::check(numpy.make(
      numpy.array_type, static_cast<int>(x.dim()),
      reinterpret_cast<const Py_ssize_t*>(x.sizes().data()), type,
      reinterpret_cast<const Py_ssize_t*>(strides.data()), x.data_ptr() ? x.data_ptr() : nothing, 0,
      kAligned | (x.storage()->writable() ? kWriteable : 0), nullptr));
  check_status(numpy.set_base(array.get(), keeper.release()));
  return array.release();
}

void add_buffer_slots(TypeSlots& slots) {
  slots.push_back(type_slot(Py_bf_getbuffer, get_buffer));
  slots.push_back(type_slot(Py_bf_releasebuffer, release_export));
}

void add_interop(PyObject* module) {
  add_signatures(functions, false);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
