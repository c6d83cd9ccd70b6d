#include "python/storage_object.h"

#include <structmember.h>

#include <cstring>
#include <memory>
#include <unordered_map>

#include "core/shared_memory.h"
#include "python/arguments.h"
#include "python/call.h"
#include "python/module.h"

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

// UntypedStorage(nbytes=0) or UntypedStorage(buffer): new memory with whatever is in it, or a copy
// of the buffer's.
PyObject* storage_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"size", "device", nullptr};
  PyObject *content = nullptr, *device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:UntypedStorage", const_cast<char**>(names),
                                   &content, &device)) {
    return nullptr;
  }
  const Device place = device && device != Py_None ? to_device(device) : Device();
  if (content && PyObject_CheckBuffer(content)) {
    const Ref<Storage> source = storage_from_buffer(content, 0, -1);
    Ref<Storage> copy = Storage::allocate(source->nbytes(), place);
    if (copy->data())
      std::memcpy(copy->data(), source->data(), static_cast<size_t>(source->nbytes()));
    return wrap(std::move(copy));
  }
  return wrap(Storage::allocate(content ? to_int(content) : 0, place));
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

PyObject* get_item(PyObject* self, PyObject* index) {
  PyRef view = PyRef::adopt(PyMemoryView_FromObject(self));
  if (!view) return nullptr;
  PyRef item = PyRef::adopt(PyObject_GetItem(view.get(), index));
  return item && PySlice_Check(index) ? call_python([&] {
    return PyObject_CallOneArg(reinterpret_cast<PyObject*>(storage_type), item.get());
  })
                                      : item.release();
}

PyObject* to_bytes(PyObject* self, PyObject*) { return PyBytes_FromObject(self); }
PyObject* to_list(PyObject* self, PyObject*) { return PySequence_List(self); }
PyObject* copy(PyObject* self, PyObject*) {
  return call_python(
      [&] { return PyObject_CallOneArg(reinterpret_cast<PyObject*>(storage_type), self); });
}
PyObject* reduce(PyObject* self, PyObject*) {
  PyRef bytes = PyRef::adopt(PyBytes_FromObject(self));
  return bytes ? Py_BuildValue("O(N)", storage_type, bytes.release()) : nullptr;
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

PyObject* is_shared(PyObject* self, PyObject*) {
  return PyBool_FromLong(shared_handle(*cast(self)->storage) >= 0);
}
PyObject* share(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  share_memory(*cast(self)->storage);
  PyRef::check(PyImport_ImportModule("taeda.multiprocessing"));  // knows how to send it
  return new_ref(self);
  TD_PYTHON_CATCH(nullptr)
}
// The file behind shared memory, which stays the storage's; -1 for other memory.
PyObject* get_shared_handle(PyObject* self, PyObject*) {
  return PyLong_FromLong(shared_handle(*cast(self)->storage));
}
// UntypedStorage._from_shared(handle, nbytes)
PyObject* from_shared(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  int handle;
  long long nbytes;
  if (!PyArg_ParseTuple(args, "iL:_from_shared", &handle, &nbytes)) return nullptr;
  return wrap(open_shared(handle, nbytes));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef methods[] = {
    {"nbytes", get_nbytes, METH_NOARGS, nullptr},
    {"size", get_nbytes, METH_NOARGS, nullptr},
    {"data_ptr", get_data_ptr, METH_NOARGS, nullptr},
    {"resizable", get_resizable, METH_NOARGS, nullptr},
    {"resize_", resize, METH_O, nullptr},
    {"tobytes", to_bytes, METH_NOARGS, nullptr},
    {"tolist", to_list, METH_NOARGS, nullptr},
    {"clone", copy, METH_NOARGS, nullptr},
    {"__copy__", copy, METH_NOARGS, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"is_shared", is_shared, METH_NOARGS, nullptr},
    {"share_memory_", share, METH_NOARGS, nullptr},
    {"_shared_handle", get_shared_handle, METH_NOARGS, nullptr},
    {"_from_shared", from_shared, METH_VARARGS | METH_STATIC, nullptr},
    {"_from_buffer", from_buffer, METH_VARARGS | METH_STATIC, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"device", get_device, nullptr, nullptr, nullptr},
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
                    "UntypedStorage(nbytes)\n\nThe bytes that tensors view: a tensor and all its "
                    "views share one storage. It indexes as a\nsequence of integers from 0 to 255 "
                    "and exports its memory as a buffer.")},
    slot(Py_bf_getbuffer, get_buffer),
    slot(Py_bf_releasebuffer, release_exported),
    slot(Py_mp_length, length),
    slot(Py_mp_subscript, get_item),
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
