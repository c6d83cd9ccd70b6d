// Files for Python: the writer that replaces a file safely, and the safetensors format.
#include "io/file_writer.h"
#include "io/safetensors.h"
#include "python/module.h"
#include "python/tensor_object.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

// Runs `call` without the GIL; a FileError becomes the OSError of its number.
template <class F>
auto file_call(F&& call) {
  try {
    GilRelease gil;
    return call();
  } catch (const io::FileError& error) {
    const PyRef path = PyRef::check(PyUnicode_DecodeFSDefault(error.path().c_str()));
    errno = error.code();
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path.get());
    throw PythonError();
  }
}

std::string to_path(PyObject* object) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(object, &bytes)) throw PythonError();
  const PyRef owner = PyRef::adopt(bytes);
  return PyBytes_AS_STRING(bytes);
}

// The memory of an object with the buffer protocol.
class Buffer {
 public:
  explicit Buffer(PyObject* object) {
    check_status(PyObject_GetBuffer(object, &view_, PyBUF_SIMPLE));
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  const char* data() const { return static_cast<const char*>(view_.buf); }
  size_t bytes() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_;
};

// --- _FileWriter(path, nameless=True) ---

struct WriterObject {
  PyObject_HEAD io::FileWriter* writer;  // null when it is closed or in use
};

WriterObject* cast(PyObject* self) { return reinterpret_cast<WriterObject*>(self); }

// The writer, which nobody else may use until the end of the scope.
class InUse {
 public:
  explicit InUse(PyObject* self)
      : object_(cast(self)), writer(std::exchange(object_->writer, nullptr)) {
    if (!writer) raise_python(PyExc_ValueError, "_FileWriter: closed, or in use");
  }
  ~InUse() { object_->writer = writer; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  WriterObject* object_;

 public:
  io::FileWriter* writer;
};

void run_signal_handlers() {
  GilAcquire gil;
  if (PyErr_CheckSignals() < 0) throw PythonError();
}

PyObject* writer_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"path", "nameless", nullptr};
  PyObject* path;
  int nameless = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:_FileWriter", const_cast<char**>(names),
                                   &path, &nameless))
    return nullptr;
  const std::string name = to_path(path);
  PyRef self = PyRef::check(type->tp_alloc(type, 0));
  cast(self.get())->writer = file_call([&] {
    return new io::FileWriter(name,
                              {.nameless = nameless != 0, .on_interrupt = run_signal_handlers});
  });
  return self.release();
  TD_PYTHON_CATCH(nullptr)
}

void writer_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete cast(self)->writer;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* writer_write(PyObject* self, PyObject* content) {
  TD_PYTHON_TRY
  const Buffer buffer(content);
  const InUse use(self);
  file_call([&] { use.writer->write(buffer.data(), buffer.bytes()); });
  return PyLong_FromSize_t(buffer.bytes());
  TD_PYTHON_CATCH(nullptr)
}

PyObject* writer_commit(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const InUse use(self);
  file_call([&] { use.writer->commit(); });
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* writer_close(PyObject* self, PyObject*) {
  delete std::exchange(cast(self)->writer, nullptr);
  Py_RETURN_NONE;
}

PyMethodDef writer_methods[] = {
    {"write", writer_write, METH_O, nullptr},
    {"commit", writer_commit, METH_NOARGS, nullptr},
    {"close", writer_close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot writer_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(writer_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(writer_dealloc)},
    {Py_tp_methods, writer_methods},
    {Py_tp_doc, const_cast<char*>("_FileWriter(path, nameless=True)\n\nA file that takes the "
                                  "place of another when it is committed.")},
    {0, nullptr},
};
PyType_Spec writer_spec = {"taeda._C._FileWriter", sizeof(WriterObject), 0, Py_TPFLAGS_DEFAULT,
                           writer_slots};

// --- safetensors ---

nn::NamedTensors to_tensors(PyObject* dict) {
  nn::NamedTensors result;
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &value);) {
    if (!PyUnicode_Check(name) || !is_tensor(value))
      raise_python(PyExc_ValueError, "save: expected a dict from text to tensors");
    result.emplace_back(std::string(utf8(name)), tensor_of(value));
  }
  return result;
}

io::TextMap to_texts(PyObject* dict) {
  io::TextMap result;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
    if (!PyUnicode_Check(key) || !PyUnicode_Check(value))
      raise_python(PyExc_ValueError, "save: metadata must be a dict from text to text");
    result.emplace(utf8(key), utf8(value));
  }
  return result;
}

io::SafetensorsWriter to_writer(PyObject* tensors, PyObject* metadata) {
  if (metadata == Py_None) return {to_tensors(tensors), nullptr};
  const io::TextMap texts = to_texts(metadata);
  return {to_tensors(tensors), &texts};
}

// _safetensors_bytes(tensors, metadata)
PyObject* safetensors_bytes(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *tensors, *metadata;
  if (!PyArg_ParseTuple(args, "O!O:_safetensors_bytes", &PyDict_Type, &tensors, &metadata))
    return nullptr;
  const io::SafetensorsWriter content = to_writer(tensors, metadata);
  PyRef result = PyRef::check(PyBytes_FromStringAndSize(nullptr, content.nbytes()));
  char* at = PyBytes_AS_STRING(result.get());
  file_call([&] {
    content.write([&](const void* data, size_t bytes) {
      if (bytes > 0) std::memcpy(at, data, bytes);
      at += bytes;
    });
  });
  return result.release();
  TD_PYTHON_CATCH(nullptr)
}

// _save_safetensors(tensors, metadata, path)
PyObject* save_safetensors(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *tensors, *metadata, *path;
  if (!PyArg_ParseTuple(args, "O!OO:_save_safetensors", &PyDict_Type, &tensors, &metadata, &path))
    return nullptr;
  const io::SafetensorsWriter content = to_writer(tensors, metadata);
  const std::string name = to_path(path);
  file_call([&] {
    io::FileWriter file(name, {.nameless = true, .on_interrupt = run_signal_handlers});
    content.write([&](const void* data, size_t bytes) { file.write(data, bytes); });
    file.commit();
  });
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

class BufferSource : public io::Source {
 public:
  explicit BufferSource(const Buffer& buffer) : buffer_(buffer) {}
  int64_t nbytes() const override { return static_cast<int64_t>(buffer_.bytes()); }
  void read(int64_t offset, void* to, int64_t bytes) override {
    TD_CHECK(offset <= nbytes() && bytes <= nbytes() - offset,
             "safetensors: the data is truncated");
    if (bytes > 0) std::memcpy(to, buffer_.data() + offset, static_cast<size_t>(bytes));
  }

 private:
  const Buffer& buffer_;
};

// _load_safetensors(path or bytes, with_tensors) -> (tensors, metadata)
PyObject* load_safetensors(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* from;
  int with_tensors;
  if (!PyArg_ParseTuple(args, "Op:_load_safetensors", &from, &with_tensors)) return nullptr;
  io::Safetensors content;
  if (PyObject_CheckBuffer(from)) {
    const Buffer buffer(from);
    BufferSource source(buffer);
    content = file_call([&] { return io::read_safetensors(source, with_tensors != 0); });
  } else {
    const std::string path = to_path(from);
    content = file_call([&] { return io::read_safetensors(path, with_tensors != 0); });
  }
  const PyRef tensors = PyRef::check(PyDict_New()), metadata = PyRef::check(PyDict_New());
  for (auto& [name, x] : content.tensors) {
    const PyRef key = PyRef::check(wrap(name)), value = PyRef::check(wrap(std::move(x)));
    check_status(PyDict_SetItem(tensors.get(), key.get(), value.get()));
  }
  for (const auto& [name, text] : content.metadata) {
    const PyRef key = PyRef::check(wrap(name)), value = PyRef::check(wrap(text));
    check_status(PyDict_SetItem(metadata.get(), key.get(), value.get()));
  }
  return PyTuple_Pack(2, tensors.get(), metadata.get());
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_safetensors_bytes", safetensors_bytes, METH_VARARGS, nullptr},
    {"_save_safetensors", save_safetensors, METH_VARARGS, nullptr},
    {"_load_safetensors", load_safetensors, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_files(PyObject* module) {
  add_type(module, "_FileWriter", &writer_spec);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
