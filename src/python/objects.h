// The small value types of the Python interface: dtype, device, layout, memory_format, Size,
// Generator.
//
// dtype, layout and memory_format objects are singletons, so `x.dtype is torch.float32` holds;
// device objects compare and hash by value; Size is a tuple with numel().
#pragma once

#include "python/common.h"
#include "taeda/tensor.h"

namespace taeda::python {

struct DTypeObject {
  PyObject_HEAD DType value;
};
struct DeviceObject {
  PyObject_HEAD Device value;
};
struct MemoryFormatObject {
  PyObject_HEAD MemoryFormat value;
};
// torch.Generator; `owned` is false for the default generator, which lives as long as the process.
struct GeneratorObject {
  PyObject_HEAD Generator* generator;
  bool owned;
};

extern PyTypeObject* dtype_type;
extern PyTypeObject* device_type;
extern PyTypeObject* layout_type;
extern PyTypeObject* memory_format_type;
extern PyTypeObject* size_type;
extern PyTypeObject* generator_type;
extern PyObject* dtype_objects[kNumDTypes];
extern PyObject* strided_layout;

inline bool is_dtype(PyObject* object) { return Py_TYPE(object) == dtype_type; }
inline bool is_device(PyObject* object) { return Py_TYPE(object) == device_type; }
inline bool is_memory_format(PyObject* object) { return Py_TYPE(object) == memory_format_type; }
inline bool is_layout(PyObject* object) { return Py_TYPE(object) == layout_type; }
inline bool is_generator(PyObject* object) { return PyObject_TypeCheck(object, generator_type); }

// A dtype from torch.float32, or from the Python types float, int, bool and complex.
bool can_be_dtype(PyObject* object);
DType to_dtype(PyObject* object);
// A device from torch.device, "cuda:1" or an accelerator's index.
bool can_be_device(PyObject* object);
Device to_device(PyObject* object);

// Each returns a new reference.
inline PyObject* wrap(DType value) { return new_ref(dtype_objects[static_cast<int>(value)]); }
PyObject* wrap(Device value);
PyObject* wrap(MemoryFormat value);
PyObject* wrap(Layout value);
// torch.Size
PyObject* wrap(IntSpan sizes);

}  // namespace taeda::python
