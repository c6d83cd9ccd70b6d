#include "python/storage_object.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "core/device_memory.h"
#include "core/shared/in_place.h"
#include "python/arguments.h"
#include "python/call.h"
#include "python/module.h"
#include "python/operator_pause.h"
#include "python/shared_name.h"

namespace taeda::python {
namespace {

struct StorageObject {
  PyObject_HEAD Ref<Storage> storage;
  PyObject* weakrefs;
};

PyTypeObject* storage_type = nullptr;
// The living object of each storage that has one.
std::unordered_map<const Storage*, PyObject*>& living() {
  static auto* map = new std::unordered_map<const Storage*, PyObject*>;
  return *map;
}

StorageObject* cast(PyObject* object) { return reinterpret_cast<StorageObject*>(object); }

void storage_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (cast(self)->weakrefs) PyObject_ClearWeakRefs(self);
  living().erase(cast(self)->storage.get());
  cast(self)->storage.~Ref();
  type->tp_free(self);
  Py_DECREF(type);
}

// The last eight bits of each number of a list or tuple.
Ref<Storage> storage_of_bytes(PyObject* sequence, Device device) {
  const PyRef items = PyRef::check(PySequence_Fast(sequence, "UntypedStorage"));
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  Ref<Storage> storage = Storage::allocate(n, DeviceType::kCPU);
  auto* const bytes = static_cast<unsigned char*>(storage->data());
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* const item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!PyLong_Check(item)) {
      raise_python(PyExc_RuntimeError,
                   "torch.UntypedStorage(): tried to construct a storage from a sequence ({}), but "
                   "one of the items was of type {} instead of int",
                   type_name(sequence), type_name(item));
    }
    if (bytes) bytes[i] = static_cast<unsigned char>(to_int(item) & 255);
  }
  if (device.is_cpu()) return storage;
  Ref<Storage> there = Storage::allocate(n, device);
  if (there->data()) copy_memory(there->data(), device, storage->data(), DeviceType::kCPU, n);
  return there;
}

Device storage_device(PyObject* given) {
  if (!given || given == Py_None) return Device();
  const Device device = to_device(given);
  TD_CHECK(device.is_cpu() || device.type == DeviceType::kCUDA || !has_memory(device),
           "torch.UntypedStorage(): Storage device not recognized: {}", Device(device.type));
  return resolved(device);
}

// UntypedStorage(nbytes=0), UntypedStorage(buffer) or UntypedStorage([1, 2]): new memory with
// whatever is in it, a copy of the buffer's, or these bytes.
PyObject* storage_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"size", "device", nullptr};
  PyObject *content = nullptr, *device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:UntypedStorage", const_cast<char**>(names),
                                   &content, &device)) {
    return nullptr;
  }
  const Device where = storage_device(device);
  if (content && PyObject_CheckBuffer(content)) {
    const Ref<Storage> source = storage_from_buffer(content, 0, -1);
    Ref<Storage> copy = Storage::allocate(source->nbytes(), where);
    if (copy->data())
      copy_memory(copy->data(), where, source->data(), DeviceType::kCPU, source->nbytes());
    return wrap(std::move(copy));
  }
  if (content && (PyList_Check(content) || PyTuple_Check(content)))
    return wrap(storage_of_bytes(content, where));
  return wrap(Storage::allocate(content ? to_int(content) : 0, where));
  TD_PYTHON_CATCH(nullptr)
}

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  Storage& storage = *cast(self)->storage;
  if (!storage.device().is_cpu()) {
    PyErr_SetString(PyExc_BufferError, "only storages on the cpu have memory that Python can see");
    return -1;
  }
  static char nothing;
  void* data = storage.data() ? storage.data() : &nothing;
  const int status = PyBuffer_FillInfo(
      buffer, self, data, static_cast<Py_ssize_t>(storage.nbytes()), !storage.writable(), flags);
  if (status == 0) storage.pin();
  return status;
}
void release_exported(PyObject* self, Py_buffer*) { cast(self)->storage->unpin(); }

PyObject* get_nbytes(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(cast(self)->storage->nbytes());
}
PyObject* get_data_ptr(PyObject* self, PyObject*) {
  return PyLong_FromVoidPtr(cast(self)->storage->data());
}
PyObject* get_resizable(PyObject* self, PyObject*) {
  return PyBool_FromLong(cast(self)->storage->resizable());
}
PyObject* get_address(PyObject* self, void*) {
  return PyLong_FromVoidPtr(cast(self)->storage.get());
}
PyObject* get_device(PyObject* self, void*) {
  TD_PYTHON_TRY
  return wrap(cast(self)->storage->device());
  TD_PYTHON_CATCH(nullptr)
}
Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(cast(self)->storage->nbytes()); }

PyObject* resize(PyObject* self, PyObject* size) {
  TD_PYTHON_TRY
  cast(self)->storage->resize(to_int(size));
  return new_ref(self);
  TD_PYTHON_CATCH(nullptr)
}

// The bytes that s[a:b] names: a storage on the same memory, which keeps this one alive and where
// it is.
Ref<Storage> slice_of(const Ref<Storage>& whole, PyObject* slice) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) throw PythonError();
  const Py_ssize_t n =
      PySlice_AdjustIndices(static_cast<Py_ssize_t>(whole->nbytes()), &start, &stop, step);
  if (step != 1) {
    raise_python(PyExc_RuntimeError,
                 "Trying to slice with a step of {}, but only a step of 1 is supported",
                 static_cast<int64_t>(step));
  }
  if (!whole->data()) return Storage::allocate(n, whole->device());
  const auto release = [](void* owner) { Ref<Storage>::adopt(static_cast<Storage*>(owner)); };
  whole->forbid_resize();
  Ref<Storage> part = Storage::wrap(static_cast<char*>(whole->data()) + start, n, whole->device(),
                                    release, Ref<Storage>(whole).detach());
  if (!whole->writable()) part->set_read_only();
  return part;
}

// One byte of memory that Python may look at.
unsigned char* byte_of(const Storage& storage, PyObject* index) {
  if (!PyIndex_Check(index))
    raise_python(PyExc_TypeError, "can't index a torch.UntypedStorage with {}", type_name(index));
  if (!storage.device().is_cpu()) {
    raise_python(PyExc_NotImplementedError, "Not available for '{}' device type", storage.device());
  }
  const int64_t given = to_int(index), i = given < 0 ? given + storage.nbytes() : given;
  if (i < 0 || i >= storage.nbytes()) {
    raise_python(PyExc_IndexError, "index {} out of range for storage of size {}", given,
                 storage.nbytes());
  }
  return static_cast<unsigned char*>(storage.data()) + i;
}

PyObject* get_item(PyObject* self, PyObject* index) {
  TD_PYTHON_TRY
  const Ref<Storage>& storage = cast(self)->storage;
  if (PySlice_Check(index)) return wrap(slice_of(storage, index));
  return PyLong_FromLong(*byte_of(*storage, index));
  TD_PYTHON_CATCH(nullptr)
}
// s[i] = value, s[a:b] = value: each byte becomes the number's last eight bits.
int set_item(PyObject* self, PyObject* index, PyObject* value) {
  TD_PYTHON_TRY
  const Ref<Storage>& storage = cast(self)->storage;
  if (!value) raise_python(PyExc_TypeError, "a storage's bytes cannot be deleted");
  if (!PyLong_Check(value)) {
    raise_python(PyExc_RuntimeError,
                 "can only set storage content with a int types, but got {} instead",
                 type_name(value));
  }
  if (!storage->writable())
    raise_python(PyExc_RuntimeError, "the memory of this storage is read-only");
  const int byte = static_cast<int>(to_int(value) & 255);
  if (PySlice_Check(index)) {
    const Ref<Storage> part = slice_of(storage, index);
    if (part->data()) std::memset(part->data(), byte, static_cast<size_t>(part->nbytes()));
  } else {
    *byte_of(*storage, index) = static_cast<unsigned char>(byte);
  }
  return 0;
  TD_PYTHON_CATCH(-1)
}
PyObject* get_sizeof(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(Py_TYPE(self)->tp_basicsize + cast(self)->storage->nbytes());
}

PyObject* to_bytes(PyObject* self, PyObject*) { return PyBytes_FromObject(self); }
PyObject* to_list(PyObject* self, PyObject*) { return PySequence_List(self); }
PyObject* copy(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const Storage& from = *cast(self)->storage;
  const Device device = from.device();
  Ref<Storage> to = Storage::allocate(from.nbytes(), device);
  if (to->data()) copy_memory(to->data(), device, from.data(), device, from.nbytes());
  return wrap(std::move(to));
  TD_PYTHON_CATCH(nullptr)
}
PyObject* reduce(PyObject* self, PyObject*) {
  PyRef portable =
      PyRef::adopt(call_python([] { return PyImport_ImportModule("taeda._portable"); }));
  if (!portable) return nullptr;
  return call_python(
      [&] { return PyObject_CallMethod(portable.get(), "reduce_storage", "O", self); });
}
PyObject* deep_copy(PyObject* self, PyObject* memo) {
  PyRef copied = PyRef::adopt(copy(self, nullptr));
  PyRef id = PyRef::adopt(PyLong_FromVoidPtr(self));
  if (!copied || !id || PyObject_SetItem(memo, id.get(), copied.get()) < 0) return nullptr;
  return copied.release();
}
PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<torch.storage.UntypedStorage of %lld bytes>",
                              static_cast<long long>(cast(self)->storage->nbytes()));
}

PyObject* sequence_item(PyObject* self, Py_ssize_t i) {
  const Storage& storage = *cast(self)->storage;
  if (i < 0 || i >= storage.nbytes() || !storage.data()) {
    PyErr_SetString(PyExc_IndexError, "storage index out of range");
    return nullptr;
  }
  return PyLong_FromLong(static_cast<const unsigned char*>(storage.data())[i]);
}

// UntypedStorage._from_buffer(exporter, offset=0, nbytes=-1): shares the memory until it is
// resized, which copies the contents out.
PyObject* from_buffer(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* exporter;
  long long offset = 0, nbytes = -1;
  if (!PyArg_ParseTuple(args, "O|LL:_from_buffer", &exporter, &offset, &nbytes)) return nullptr;
  Ref<Storage> storage = storage_from_buffer(exporter, offset, nbytes);
  storage->set_movable();
  return wrap(std::move(storage));
  TD_PYTHON_CATCH(nullptr)
}

// UntypedStorage.from_buffer(buffer, byte_order=None, count=None, offset=0, dtype=uint8): a copy of
// `count` elements (all from `offset` on) in the machine's byte order.
PyObject* copy_of_buffer(PyObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"buffer", "byte_order", "count", "offset", "dtype", nullptr};
  PyObject *exporter, *count = Py_None, *type = Py_None;
  const char* order = nullptr;
  long long offset = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|zOLO:from_buffer", const_cast<char**>(names),
                                   &exporter, &order, &count, &offset, &type))
    return nullptr;
  const DType dtype = type == Py_None ? DType::kUInt8 : to_dtype(type);
  const std::string_view given(order ? order : "native");
  if (given != "native" && given != "little" && given != "big")
    raise_python(PyExc_ValueError, "invalid byte_order '{}'; expected big, little, or native",
                 given);
  const int64_t size = item_size(dtype);
  int64_t nbytes = -1;
  if (count != Py_None && __builtin_mul_overflow(to_int(count), size, &nbytes)) nbytes = INT64_MAX;
  const Ref<Storage> source = storage_from_buffer(exporter, offset, nbytes);
  if (source->nbytes() % size != 0) {
    raise_python(PyExc_ValueError, "buffer size ({}) must be a multiple of element size ({})",
                 source->nbytes(), size);
  }
  Ref<Storage> copied = Storage::allocate(source->nbytes(), Device());
  char* const to = static_cast<char*>(copied->data());
  if (source->nbytes() > 0) std::memcpy(to, source->data(), static_cast<size_t>(source->nbytes()));
  if (given == "big") {
    const int64_t word = is_complex(dtype) ? size / 2 : size;
    for (int64_t i = 0; i < source->nbytes(); i += word) std::reverse(to + i, to + i + word);
  }
  return wrap(std::move(copied));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* get_shared(PyObject* self, PyObject*) {
  return PyBool_FromLong(is_shared(*cast(self)->storage));
}
PyObject* share_storage(PyObject* self, bool prefer_in_place) {
  TD_PYTHON_TRY
  Storage& storage = *cast(self)->storage;
  // Small memory moves, away from under an operator that writes to it.
  if (prefer_in_place && !shared::can_share_in_place(storage.data(), storage.nbytes()) &&
      !is_shared(storage))
    wait_for_operators();
  share_memory(storage, prefer_in_place);
  PyRef::check(PyImport_ImportModule("taeda.multiprocessing"));  // knows how to send it
  return new_ref(self);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* share(PyObject* self, PyObject*) { return share_storage(self, false); }
// The same while other threads may be writing to the memory.
PyObject* share_in_place(PyObject* self, PyObject*) { return share_storage(self, true); }
// What a message says of shared memory (SharedName), as bytes.
PyObject* send(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const SharedName name = send_shared(*cast(self)->storage);
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&name), sizeof name);
  TD_PYTHON_CATCH(nullptr)
}
// UntypedStorage._receive(name): the storage that the message names.
PyObject* receive(PyObject*, PyObject* name) {
  TD_PYTHON_TRY
  return wrap(receive_shared(shared_name(name)));
  TD_PYTHON_CATCH(nullptr)
}
// UntypedStorage._new_shared(nbytes)
PyObject* new_shared(PyObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"size", "device", nullptr};
  PyObject *size, *device = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:_new_shared", const_cast<char**>(names),
                                   &size, &device))
    return nullptr;
  const Device where = device == Py_None ? Device() : resolved(to_device(device));
  const int64_t nbytes = to_int(size);
  return wrap(where.is_cpu() ? allocate_shared(nbytes) : Storage::allocate(nbytes, where));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef methods[] = {
    {"nbytes", get_nbytes, METH_NOARGS, "nbytes($self, /)\n--\n\nIts size in bytes."},
    {"size", get_nbytes, METH_NOARGS, "size($self, /)\n--\n\nIts size in bytes."},
    {"data_ptr", get_data_ptr, METH_NOARGS,
     "data_ptr($self, /)\n--\n\nThe address of the first byte."},
    {"resizable", get_resizable, METH_NOARGS,
     "resizable($self, /)\n--\n\nWhether resize_ may change its size."},
    {"resize_", resize, METH_O,
     "resize_($self, nbytes, /)\n--\n\nMakes it hold so many bytes, with what it has of them."},
    {"tobytes", to_bytes, METH_NOARGS, "tobytes($self, /)\n--\n\nA copy of its bytes."},
    {"tolist", to_list, METH_NOARGS, "tolist($self, /)\n--\n\nIts bytes as integers."},
    {"clone", copy, METH_NOARGS, "clone($self, /)\n--\n\nA copy with memory of its own."},
    {"__copy__", copy, METH_NOARGS, nullptr},
    {"__deepcopy__", deep_copy, METH_O, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__sizeof__", get_sizeof, METH_NOARGS, nullptr},
    {"is_shared", get_shared, METH_NOARGS,
     "is_shared($self, /)\n--\n\nWhether other processes may see it."},
    {"share_memory_", share, METH_NOARGS,
     "share_memory_($self, /)\n--\n\nMoves it to memory that other processes may see."},
    {"_share_memory_in_place", share_in_place, METH_NOARGS, nullptr},
    {"_send", send, METH_NOARGS, nullptr},
    {"_receive", receive, METH_O | METH_STATIC, nullptr},
    {"_new_shared", as_function(new_shared), METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {"_from_buffer", from_buffer, METH_VARARGS | METH_STATIC, nullptr},
    {"from_buffer", as_function(copy_of_buffer), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "from_buffer(*args, **kwargs)\n--\n\nA storage with a copy of a buffer's bytes."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"device", get_device, nullptr, nullptr, nullptr},
    {"_cdata", get_address, nullptr,
     "A number that no other storage has as long as this one lives.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StorageObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
template <class F>
PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}
PyType_Slot slots[] = {
    slot(Py_tp_dealloc, storage_dealloc),
    slot(Py_tp_new, storage_new),
    slot(Py_tp_repr, repr),
    {Py_tp_doc, const_cast<char*>(
                    "UntypedStorage(*args, device=None)\n--\n\nUntypedStorage(nbytes)\n\nThe bytes "
                    "that tensors view: a tensor and all its "
                    "views share one storage. It indexes as a\nsequence of integers from 0 to 255, "
                    "of which a slice shares the memory, and exports its\nmemory as a buffer.")},
    slot(Py_bf_getbuffer, get_buffer),
    slot(Py_bf_releasebuffer, release_exported),
    slot(Py_mp_length, length),
    slot(Py_mp_subscript, get_item),
    slot(Py_mp_ass_subscript, set_item),
    slot(Py_sq_item, sequence_item),
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {0, nullptr},
};
PyType_Spec spec = {"taeda.UntypedStorage", sizeof(StorageObject), 0, Py_TPFLAGS_DEFAULT, slots};

// Drops a Py_buffer, on whatever thread the storage died.
void release_buffer(void* context) {
  Py_buffer* buffer = static_cast<Py_buffer*>(context);
  if (!Py_IsInitialized()) return;
  GilAcquire gil;
  PyBuffer_Release(buffer);
  delete buffer;
}

}  // namespace

PyObject* wrap(Ref<Storage> storage) {
  const auto found = living().find(storage.get());
  if (found != living().end()) return new_ref(found->second);
  PyObject* self = storage_type->tp_alloc(storage_type, 0);
  if (!self) throw PythonError();
  living()[storage.get()] = self;
  new (&cast(self)->storage) Ref<Storage>(std::move(storage));
  return self;
}

SharedName shared_name(PyObject* bytes) {
  SharedName name;
  char* text;
  Py_ssize_t length;
  check_status(PyBytes_AsStringAndSize(bytes, &text, &length));
  if (length != sizeof name)
    raise_python(PyExc_ValueError, "share_memory: expected a name of {} bytes, got {}",
                 static_cast<int64_t>(sizeof name), static_cast<int64_t>(length));
  std::memcpy(&name, text, sizeof name);
  return name;
}

bool is_storage(PyObject* object) { return Py_TYPE(object) == storage_type; }
const Ref<Storage>& storage_of(PyObject* object) { return cast(object)->storage; }

Ref<Storage> storage_from_buffer(PyObject* exporter, int64_t offset, int64_t nbytes) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(exporter, buffer.get(), PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    check_status(PyObject_GetBuffer(exporter, buffer.get(), PyBUF_SIMPLE));
  }
  const int64_t available = buffer->len;
  if (offset < 0 || offset > available || nbytes > available - offset) {
    PyBuffer_Release(buffer.get());
    raise_python(PyExc_ValueError,
                 "expected offset and size inside the buffer's {} bytes, got offset {} and size {}",
                 available, offset, nbytes);
  }
  const bool read_only = buffer->readonly;
  char* data = static_cast<char*>(buffer->buf) + offset;
  Ref<Storage> storage = Storage::wrap(data, nbytes < 0 ? available - offset : nbytes, Device(),
                                       release_buffer, buffer.release());
  if (read_only) storage->set_read_only();
  return storage;
}

void add_storage(PyObject* module) { storage_type = add_type(module, "UntypedStorage", &spec); }

}  // namespace taeda::python
