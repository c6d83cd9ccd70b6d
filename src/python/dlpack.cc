#include "python/dlpack.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>

#include "core/device_memory.h"

namespace taeda::python {
namespace {

// --- the structures of the DLPack ABI ---

struct DLDataType {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat16, 5 complex, 6 bool
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor tensor;
};
constexpr uint64_t kReadOnly = 1;

DLDataType dlpack_type(DType dtype) {
  const uint16_t lanes = dtype == DType::kFloat4E2M1FNx2 ? 2 : 1;
  return {dtype_info(dtype).dlpack, static_cast<uint8_t>(item_size(dtype) * 8 / lanes), lanes};
}

DType taeda_type(DLDataType type) {
  for (int i = 0; i < kNumDTypes; i++) {
    const DLDataType known = dlpack_type(static_cast<DType>(i));
    if (std::tie(known.code, known.bits, known.lanes) == std::tie(type.code, type.bits, type.lanes))
      return static_cast<DType>(i);
  }
  raise_python(PyExc_BufferError,
               "from_dlpack(): no dtype for DLPack type code {} with {} bits and {} lanes",
               static_cast<int>(type.code), static_cast<int>(type.bits),
               static_cast<int>(type.lanes));
}

// --- handing out ---

template <class Managed>
struct Exported {
  Managed managed;
  Ref<Storage> storage;
  DimVector shape, strides;
};

template <class Managed>
void release_exported(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->context);
}

template <class Managed>
void destroy_capsule(PyObject* capsule) {
  constexpr bool versioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
  const char* name = versioned ? "dltensor_versioned" : "dltensor";
  if (!PyCapsule_IsValid(capsule, name)) return;  // taken over by a consumer, who renamed it
  Managed* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class Managed>
PyObject* export_tensor(const Tensor& x, const char* name) {
  if (x.is_conj() || x.is_neg())
    raise_python(PyExc_BufferError,
                 "Can't export tensors with the {} bit set: use tensor.resolve_{}()",
                 x.is_conj() ? "conjugate" : "negative", x.is_conj() ? "conj" : "neg");
  auto exported = std::make_unique<Exported<Managed>>();
  exported->storage = x.storage();
  exported->storage->forbid_resize();
  exported->shape = x.sizes();
  exported->strides = x.strides();
  Managed& managed = exported->managed;
  managed.context = exported.get();
  managed.deleter = release_exported<Managed>;
  managed.tensor = {x.data_ptr(),
                    dlpack_device(x.device()),
                    static_cast<int32_t>(x.dim()),
                    dlpack_type(x.dtype()),
                    exported->shape.data(),
                    exported->strides.data(),
                    0};
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    managed.major = 1;
    managed.minor = 0;
    managed.flags = x.storage()->writable() ? 0 : kReadOnly;
  }
  PyObject* capsule = PyCapsule_New(&managed, name, destroy_capsule<Managed>);
  if (!capsule) throw PythonError();
  exported.release();
  return capsule;
}

// --- taking over ---

template <class Managed>
void release_imported(void* context) {
  Managed* managed = static_cast<Managed*>(context);
  if (!managed->deleter) return;
  if (!Py_IsInitialized()) return;
  GilAcquire gil;  // the producer may be a Python library
  managed->deleter(managed);
}

// What a DLTensor says, checked: a producer may be anybody's code.
struct Description {
  DType dtype;
  Device device;
  DimVector sizes, strides;
  char* data;
  int64_t nbytes;  // up to the end of the last element
};

// Row-major strides where the producer gives none, and where no element is reached by them.
void fill_strides(const DLTensor& given, bool empty, Description& d) {
  int64_t dense = 1;
  d.strides.resize(d.sizes.size());
  for (size_t i = d.sizes.size(); i-- > 0;) {
    const bool unused = empty || (d.sizes[i] == 1 && given.strides && given.strides[i] < 0);
    const int64_t stride = given.strides && !unused ? given.strides[i] : dense;
    if (stride < 0)
      raise_python(PyExc_BufferError,
                   "from_dlpack(): size {} and stride {} at dimension {} are not supported",
                   d.sizes[i], stride, i);
    d.strides[i] = stride;
    if (__builtin_mul_overflow(dense, std::max<int64_t>(d.sizes[i], 1), &dense))
      raise_python(PyExc_BufferError, "from_dlpack(): sizes and strides overflow");
  }
}

// Bytes from the first element to the end of the last.
int64_t reach_of(const Description& d) {
  int64_t reach = 1, nbytes = 0;
  bool overflow = false;
  for (size_t i = 0; i < d.sizes.size(); i++) {
    int64_t last = 0;
    overflow |= __builtin_mul_overflow(d.sizes[i] - 1, d.strides[i], &last) ||
                __builtin_add_overflow(reach, last, &reach);
  }
  overflow |= __builtin_mul_overflow(reach, item_size(d.dtype), &nbytes);
  if (overflow) raise_python(PyExc_BufferError, "from_dlpack(): sizes and strides overflow");
  return nbytes;
}

Description describe(const DLTensor& given) {
  Description d{taeda_type(given.dtype), resolved(device_of(given.device)), {}, {}, nullptr, 0};
  if (given.ndim < 0 || given.ndim > 64)
    raise_python(PyExc_BufferError, "from_dlpack(): {} dimensions",
                 static_cast<int64_t>(given.ndim));
  if (given.ndim > 0 && !given.shape)
    raise_python(PyExc_BufferError, "from_dlpack(): {} dimensions without a shape",
                 static_cast<int64_t>(given.ndim));
  for (int i = 0; i < given.ndim; i++) {
    if (given.shape[i] < 0)
      raise_python(PyExc_BufferError, "from_dlpack(): size {} at dimension {}", given.shape[i], i);
    d.sizes.push_back(given.shape[i]);
  }
  const bool empty = std::find(d.sizes.begin(), d.sizes.end(), 0) != d.sizes.end();
  fill_strides(given, empty, d);
  if (empty) return d;
  d.nbytes = reach_of(d);
  if (!given.data)
    raise_python(PyExc_BufferError, "from_dlpack(): {} bytes at a null pointer", d.nbytes);
  intptr_t begin = 0, end = 0;  // signed: programs have the lower half of the address space
  if (__builtin_add_overflow(reinterpret_cast<intptr_t>(given.data), given.byte_offset, &begin) ||
      __builtin_add_overflow(begin, d.nbytes, &end))
    raise_python(PyExc_BufferError,
                 "from_dlpack(): a byte offset of {} leads out of the address space",
                 given.byte_offset);
  d.data = static_cast<char*>(given.data) + given.byte_offset;
  return d;
}

template <class Managed>
Tensor import_tensor(PyObject* capsule, const char* name, const char* used_name) {
  Managed* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (!managed) throw PythonError();
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    if (managed->major > 1)
      raise_python(PyExc_BufferError, "from_dlpack(): DLPack version {} is not supported",
                   managed->major);
  }
  const Description d = describe(managed->tensor);
  // From here on the memory is ours: the capsule must not be used again.
  check_status(PyCapsule_SetName(capsule, used_name));
  Ref<Storage> storage =
      Storage::wrap(d.data, d.nbytes, d.device, release_imported<Managed>, managed);
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    if (managed->flags & kReadOnly) storage->set_read_only();
  }
  Ref<TensorImpl> impl(new TensorImpl(std::move(storage), d.dtype, d.device));
  impl->set_layout(d.sizes, d.strides, 0);
  return Tensor(std::move(impl));
}

}  // namespace

DLDevice dlpack_device(Device device) {
  switch (device.type) {
    case DeviceType::kCPU:
      return {DLDevice::kCpu, 0};
    case DeviceType::kCUDA:
      return {DLDevice::kCuda, std::max<int32_t>(device.index, 0)};
    case DeviceType::kMeta:
      break;
  }
  raise_python(PyExc_BufferError, "Cannot pack tensors on {}", device);
}

Device device_of(DLDevice device) {
  const bool is_cuda = device.type == DLDevice::kCuda;
  if (device.id >= 0 && (device.type == DLDevice::kCpu || device.type == DLDevice::kCudaHost))
    return DeviceType::kCPU;
  if (device.id >= 0 && device.id <= INT8_MAX && is_cuda)
    return {DeviceType::kCUDA, static_cast<int8_t>(device.id)};
  raise_python(PyExc_BufferError, "from_dlpack(): Unsupported device_type: {}, id {}",
               static_cast<int64_t>(device.type), static_cast<int64_t>(device.id));
}

PyObject* make_capsule(const Tensor& x, bool versioned) {
  return versioned ? export_tensor<DLManagedTensorVersioned>(x, "dltensor_versioned")
                   : export_tensor<DLManagedTensor>(x, "dltensor");
}

Tensor open_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    return import_tensor<DLManagedTensorVersioned>(capsule, "dltensor_versioned",
                                                   "used_dltensor_versioned");
  }
  if (PyCapsule_IsValid(capsule, "dltensor"))
    return import_tensor<DLManagedTensor>(capsule, "dltensor", "used_dltensor");
  raise_python(PyExc_RuntimeError,
               "from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
               "consumed only once, so you might have already constructed a tensor from it once.");
}

}  // namespace taeda::python
