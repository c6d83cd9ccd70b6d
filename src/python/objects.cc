#include "python/objects.h"

#include <cstring>
#include <utility>

#include "device/device.h"
#include "python/arguments.h"
#include "python/module.h"

namespace taeda::python {

PyTypeObject* dtype_type = nullptr;
PyTypeObject* device_type = nullptr;
PyTypeObject* layout_type = nullptr;
PyTypeObject* memory_format_type = nullptr;
PyTypeObject* size_type = nullptr;
PyObject* dtype_objects[kNumDTypes] = {};
PyObject* strided_layout = nullptr;

namespace {

PyObject* memory_format_objects[4] = {};

struct LayoutObject {
  PyObject_HEAD const char* name;
};

template <class T>
T* cast(PyObject* object) {
  return reinterpret_cast<T*>(object);
}

// --- dtype ---

DType dtype_of(PyObject* self) { return cast<DTypeObject>(self)->value; }

PyObject* unicode(std::string_view text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}
PyObject* dtype_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", std::string(to_text(dtype_of(self))).c_str());
}
PyObject* dtype_reduce(PyObject* self, PyObject*) { return unicode(to_text(dtype_of(self))); }
PyObject* dtype_to_complex(PyObject* self, PyObject*) { return wrap(to_complex(dtype_of(self))); }
PyObject* dtype_to_real(PyObject* self, PyObject*) { return wrap(to_real(dtype_of(self))); }
PyObject* dtype_is_floating(PyObject* self, void*) {
  return PyBool_FromLong(is_floating(dtype_of(self)));
}
PyObject* dtype_is_complex(PyObject* self, void*) {
  return PyBool_FromLong(is_complex(dtype_of(self)));
}
PyObject* dtype_is_signed(PyObject* self, void*) {
  return PyBool_FromLong(is_signed(dtype_of(self)));
}
PyObject* dtype_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(item_size(dtype_of(self)));
}
// The name of its tensor type and storage (FloatTensor, FloatStorage).
PyObject* dtype_class_name(PyObject* self, void*) {
  return unicode(scalar_type_name(dtype_of(self)));
}
PyObject* dtype_is_storage_type(PyObject* self, void*) {
  return PyBool_FromLong(is_storage_type(dtype_of(self)));
}

PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_complex", dtype_to_complex, METH_NOARGS,
     "to_complex($self, /)\n--\n\nThe complex type with parts of this precision."},
    {"to_real", dtype_to_real, METH_NOARGS,
     "to_real($self, /)\n--\n\nThe type of the parts of this complex type."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating, nullptr, nullptr, nullptr},
    {"is_complex", dtype_is_complex, nullptr, nullptr, nullptr},
    {"is_signed", dtype_is_signed, nullptr, nullptr, nullptr},
    {"_class_name", dtype_class_name, nullptr, nullptr, nullptr},
    {"_is_storage_type", dtype_is_storage_type, nullptr, nullptr, nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot dtype_slots[] = {
    {Py_tp_doc, const_cast<char*>("The type of a tensor's elements: torch.float32, torch.int64.")},
    {Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
    {Py_tp_methods, dtype_methods},
    {Py_tp_getset, dtype_getset},
    {0, nullptr},
};
PyType_Spec dtype_spec = {"taeda.dtype", sizeof(DTypeObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dtype_slots};

// --- device ---

Device device_of(PyObject* self) { return cast<DeviceObject>(self)->value; }
std::string device_type_name(Device device) { return to_text(Device(device.type)); }

// torch.device("cuda:1"), torch.device("cuda", 1), torch.device(1), torch.device(other)
PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"type", "index", nullptr};
  PyObject *type = nullptr, *index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type,
                                   &index)) {
    return nullptr;
  }
  if (!can_be_device(type)) {
    raise_python(PyExc_TypeError, "device(): argument 'type' (position 1) must be str, not {}",
                 type_name(type));
  }
  Device device = to_device(type);
  if (index != Py_None) {
    if (PyUnicode_Check(type) && device.index >= 0) {
      raise_python(
          PyExc_RuntimeError,
          "type (string) must not include an index because index was passed explicitly: {}",
          utf8(type));
    }
    const int64_t value = to_int(index);
    if (value < 0 || value > 127)
      raise_python(PyExc_RuntimeError, "Device index must not be negative, got {}", value);
    device.index = static_cast<int8_t>(value);
  }
  return wrap(device);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* device_repr(PyObject* self) {
  const Device device = device_of(self);
  if (device.index < 0)
    return PyUnicode_FromFormat("device(type='%s')", device_type_name(device).c_str());
  return PyUnicode_FromFormat("device(type='%s', index=%d)", device_type_name(device).c_str(),
                              device.index);
}
PyObject* device_str(PyObject* self) {
  const Device device = device_of(self);
  if (device.index < 0) return PyUnicode_FromString(device_type_name(device).c_str());
  return PyUnicode_FromFormat("%s:%d", device_type_name(device).c_str(), device.index);
}
Py_hash_t device_hash(PyObject* self) {
  const Device device = device_of(self);
  return static_cast<int>(device.type) * 256 + device.index + 2;
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_of(a) == device_of(b)) == (op == Py_EQ));
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  const Device device = device_of(self);
  if (device.index < 0) return Py_BuildValue("O(s)", device_type, device_type_name(device).c_str());
  return Py_BuildValue("O(si)", device_type, device_type_name(device).c_str(), device.index);
}
PyObject* device_get_type(PyObject* self, void*) {
  return PyUnicode_FromString(device_type_name(device_of(self)).c_str());
}
PyObject* device_get_index(PyObject* self, void*) {
  if (device_of(self).index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(device_of(self).index);
}

// `with torch.device("meta"):` is a mode written in Python.
PyObject* call_device_scope(const char* name, PyObject* argument) {
  PyRef module = PyRef::adopt(PyImport_ImportModule("taeda.utils._device"));
  return module ? PyObject_CallMethod(module.get(), name, "O", argument) : nullptr;
}
PyObject* device_enter(PyObject* self, PyObject*) { return call_device_scope("enter", self); }
PyObject* device_exit(PyObject* self, PyObject*) { return call_device_scope("leave", self); }

PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {"__enter__", device_enter, METH_NOARGS, nullptr},
                                {"__exit__", device_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef device_getset[] = {
    {"type", device_get_type, nullptr, nullptr, nullptr},
    {"index", device_get_index, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot device_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(device_new)},
    {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
    {Py_tp_str, reinterpret_cast<void*>(device_str)},
    {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_getset},
    {Py_tp_doc,
     const_cast<char*>("device(type, index=None)\n--\n\ndevice(type, index=None), "
                       "device('cuda:1')\n\nWhere tensors are: 'cpu', or "
                       "'meta' for shapes alone. As a context manager it is the\ndevice of the "
                       "tensors that are made inside.")},
    {0, nullptr},
};
PyType_Spec device_spec = {"taeda.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT,
                           device_slots};

// --- layout and memory_format ---

PyObject* layout_objects[8];  // in the order of Layout; no tensor of the core has the last two

const char* memory_format_name(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::kContiguous:
      return "contiguous_format";
    case MemoryFormat::kPreserve:
      return "preserve_format";
    case MemoryFormat::kChannelsLast:
      return "channels_last";
    case MemoryFormat::kChannelsLast3d:
      return "channels_last_3d";
  }
  return "contiguous_format";
}
PyObject* memory_format_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s",
                              memory_format_name(cast<MemoryFormatObject>(self)->value));
}
PyObject* memory_format_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(memory_format_name(cast<MemoryFormatObject>(self)->value));
}
PyObject* layout_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", cast<LayoutObject>(self)->name);
}
PyObject* layout_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(cast<LayoutObject>(self)->name);
}

PyMethodDef memory_format_methods[] = {{"__reduce__", memory_format_reduce, METH_NOARGS, nullptr},
                                       {nullptr, nullptr, 0, nullptr}};
PyType_Slot memory_format_slots[] = {
    {Py_tp_doc, const_cast<char*>("The order of a tensor's elements in memory: "
                                  "torch.contiguous_format, torch.channels_last.")},
    {Py_tp_repr, reinterpret_cast<void*>(memory_format_repr)},
    {Py_tp_methods, memory_format_methods},
    {0, nullptr},
};
PyType_Spec memory_format_spec = {"taeda.memory_format", sizeof(MemoryFormatObject), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  memory_format_slots};
PyMethodDef layout_methods[] = {{"__reduce__", layout_reduce, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyType_Slot layout_slots[] = {
    {Py_tp_doc, const_cast<char*>("How a tensor's elements are stored: torch.strided, "
                                  "torch.sparse_coo, torch.sparse_csr.")},
    {Py_tp_repr, reinterpret_cast<void*>(layout_repr)},
    {Py_tp_methods, layout_methods},
    {0, nullptr},
};
PyType_Spec layout_spec = {"taeda.layout", sizeof(LayoutObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, layout_slots};

// --- Size ---

PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  PyRef owner = PyRef::adopt(tuple);
  const Py_ssize_t size = PyTuple_GET_SIZE(tuple);
  PyObject* result = size_type->tp_alloc(size_type, size);
  if (!result) return nullptr;
  for (Py_ssize_t i = 0; i < size; i++)
    PyTuple_SET_ITEM(result, i, new_ref(PyTuple_GET_ITEM(tuple, i)));
  return result;
}

PyObject* size_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  PyRef tuple = PyRef::check(PyTuple_Type.tp_new(&PyTuple_Type, args, kwargs));
  const Py_ssize_t size = PyTuple_GET_SIZE(tuple.get());
  PyRef ints = PyRef::check(PyTuple_New(size));
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    if (!can_be_int(item) && !PyBool_Check(item)) {
      raise_python(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item {} is '{}')",
                   static_cast<int64_t>(i), type_name(item));
    }
    PyTuple_SET_ITEM(ints.get(), i, PyRef::check(PyLong_FromLongLong(to_int(item))).release());
  }
  return as_size(ints.release());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* size_repr(PyObject* self) {
  TD_PYTHON_TRY
  std::string text = "torch.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) {
    PyRef item = PyRef::check(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
    text += std::string(i ? ", " : "") + std::string(utf8(item.get()));
  }
  return PyUnicode_FromFormat("%s])", text.c_str());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* size_numel(PyObject* self, PyObject*) {
  PyRef product = PyRef::adopt(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(self); i++) {
    product = PyRef::adopt(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
  }
  return product.release();
}
PyObject* size_reduce(PyObject* self, PyObject*) {
  PyRef tuple = PyRef::adopt(PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self)));
  return tuple ? Py_BuildValue("O(N)", size_type, tuple.release()) : nullptr;
}
PyObject* size_subscript(PyObject* self, PyObject* key) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
}
// Whether all items are what a Size holds. Sets TypeError for others, which could also be Sizes in
// Sizes without end.
bool are_sizes(PyObject* tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (PyLong_Check(item)) continue;
    PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                 type_name(item));
    return false;
  }
  return true;
}
// tuple + Size and Size + tuple both make a Size, as in PyTorch.
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  if (!are_sizes(a) || !are_sizes(b)) return nullptr;
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* size_concat(PyObject* self, PyObject* other) { return size_add(self, other); }
PyObject* size_repeat(PyObject* self, Py_ssize_t count) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, count));
}
PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS,
     "numel($self, /)\n--\n\nThe number of elements of a tensor of this size."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
// Dead Sizes of few dimensions, ready for the next x.shape, linked through their first item. They
// hold only numbers, so the garbage collector need not know them.
constexpr Py_ssize_t kMaxListedDims = 6;
constexpr int kMaxListed = 32;
struct SizeList {
  PyObject* first = nullptr;
  int count = 0;
};
SizeList size_lists[kMaxListedDims + 1];

PyObject*& first_item(PyObject* tuple) { return cast<PyTupleObject>(tuple)->ob_item[0]; }

PyObject* new_size(Py_ssize_t dims) {
  if (dims > 0 && dims <= kMaxListedDims && size_lists[dims].first) {
    SizeList& list = size_lists[dims];
    PyObject* tuple = std::exchange(list.first, first_item(list.first));
    list.count--;
    Py_SET_REFCNT(tuple, 1);
    return tuple;
  }
  PyObject* tuple = reinterpret_cast<PyObject*>(PyObject_GC_NewVar(PyTupleObject, size_type, dims));
  if (!tuple) throw PythonError();
  return tuple;
}

void size_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  const Py_ssize_t dims = PyTuple_GET_SIZE(self);
  for (Py_ssize_t i = 0; i < dims; i++) Py_XDECREF(PyTuple_GET_ITEM(self, i));
  if (type == size_type && dims > 0 && dims <= kMaxListedDims &&
      size_lists[dims].count < kMaxListed) {
    SizeList& list = size_lists[dims];
    first_item(self) = std::exchange(list.first, self);
    list.count++;
    return;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot size_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(size_dealloc)},
    {Py_tp_new, reinterpret_cast<void*>(size_new)},
    {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
    {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
    {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
    {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
    {Py_nb_add, reinterpret_cast<void*>(size_add)},
    {Py_tp_methods, size_methods},
    {0, nullptr},
};
PyType_Spec size_spec = {"taeda.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};

template <class T>
T* make(PyTypeObject* type) {
  PyObject* object = type->tp_alloc(type, 0);
  if (!object) throw PythonError();
  return cast<T>(object);
}

}  // namespace

PyTypeObject* add_type(PyObject* module, const char* name, PyType_Spec* spec, PyTypeObject* base) {
  PyRef bases = base ? PyRef::check(PyTuple_Pack(1, base)) : PyRef();
  PyRef type = PyRef::check(PyType_FromSpecWithBases(spec, bases.get()));
  check_status(PyModule_AddObjectRef(module, name, type.get()));
  return reinterpret_cast<PyTypeObject*>(type.release());
}

bool can_be_dtype(PyObject* object) {
  return is_dtype(object) || object == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
         object == reinterpret_cast<PyObject*>(&PyLong_Type) ||
         object == reinterpret_cast<PyObject*>(&PyBool_Type) ||
         object == reinterpret_cast<PyObject*>(&PyComplex_Type);
}

DType to_dtype(PyObject* object) {
  if (is_dtype(object)) return dtype_of(object);
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::kFloat64;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::kInt64;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  return DType::kComplex128;
}

bool can_be_device(PyObject* object) {
  return is_device(object) || PyUnicode_Check(object) ||
         (PyLong_Check(object) && !PyBool_Check(object));
}

Device to_device(PyObject* object) {
  if (is_device(object)) return device_of(object);
  if (PyUnicode_Check(object)) return Device::parse(utf8(object));
  const int64_t index = to_int(object);
  if (index < 0 || index > 127)
    raise_python(PyExc_RuntimeError, "Device index must not be negative, got {}", index);
  if (cuda::device_count() == 0)  // a number is of the accelerator, whichever there is
    raise_python(PyExc_RuntimeError, "Cannot access accelerator device when none is available.");
  return Device(DeviceType::kCUDA, static_cast<int8_t>(index));
}

PyObject* wrap(Device value) {
  static PyObject* cpu = nullptr;  // the device that nearly every question is about
  if (cpu && value == Device()) return new_ref(cpu);
  DeviceObject* object = make<DeviceObject>(device_type);
  object->value = value;
  if (value == Device()) cpu = new_ref(reinterpret_cast<PyObject*>(object));
  return reinterpret_cast<PyObject*>(object);
}

PyObject* wrap(MemoryFormat value) {
  return new_ref(memory_format_objects[static_cast<int>(value)]);
}

PyObject* wrap(IntSpan sizes) {
  PyObject* tuple = new_size(static_cast<Py_ssize_t>(sizes.size()));
  for (size_t i = 0; i < sizes.size(); i++) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
  }
  return tuple;
}

PyObject* wrap(Layout value) { return new_ref(layout_objects[static_cast<int>(value)]); }

void add_objects(PyObject* module) {
  dtype_type = add_type(module, "dtype", &dtype_spec);
  device_type = add_type(module, "device", &device_spec);
  layout_type = add_type(module, "layout", &layout_spec);
  memory_format_type = add_type(module, "memory_format", &memory_format_spec);
  size_type = add_type(module, "Size", &size_spec, &PyTuple_Type);

  for (int i = 0; i < kNumDTypes; i++) {
    DTypeObject* object = make<DTypeObject>(dtype_type);
    object->value = static_cast<DType>(i);
    dtype_objects[i] = reinterpret_cast<PyObject*>(object);
    for (const std::string_view name : {kDTypes[i].name, kDTypes[i].other_name})
      if (!name.empty())  // of string literals, so that it ends with a zero
        check_status(PyModule_AddObjectRef(module, name.data(), dtype_objects[i]));
  }
  for (int i = 0; i < 4; i++) {
    MemoryFormatObject* object = make<MemoryFormatObject>(memory_format_type);
    object->value = static_cast<MemoryFormat>(i);
    memory_format_objects[i] = reinterpret_cast<PyObject*>(object);
    check_status(
        PyModule_AddObjectRef(module, memory_format_name(object->value), memory_format_objects[i]));
  }
  size_t layouts = 0;
  for (const char* name : {"strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr",
                           "sparse_bsc", "_mkldnn", "jagged"}) {
    LayoutObject* object = make<LayoutObject>(layout_type);
    object->name = name;
    check_status(PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(object)));
    layout_objects[layouts++] = reinterpret_cast<PyObject*>(object);
  }
  strided_layout = layout_objects[0];
}

}  // namespace taeda::python
