#include "python/tensor_object.h"

#include <structmember.h>

#include <new>

#include "python/autograd.h"
#include "python/call.h"
#include "python/generated.h"
#include "python/module.h"
#include "python/tensor_slots.h"
#include "python/torch_dispatch.h"
#include "python/torch_function.h"

namespace taeda::python {

PyTypeObject* tensor_type = nullptr;
PyTypeObject* parameter_type = nullptr;

namespace {

TensorObject* cast(PyObject* object) { return reinterpret_cast<TensorObject*>(object); }

// --- objects of the exact type are recycled: making one is a pop and three stores ---

constexpr int kMaxFree = 256;
PyObject* free_objects[kMaxFree];
int free_count = 0;

PyObject* allocate_exact() {
  if (free_count > 0) [[likely]]
    return PyObject_Init(free_objects[--free_count], tensor_type);
  PyObject* object = reinterpret_cast<PyObject*>(PyObject_GC_New(TensorObject, tensor_type));
  if (!object) throw PythonError();
  return object;
}

void tensor_dealloc(PyObject* self) {
  TensorObject* object = cast(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(object->dict);
  if (object->tensor.defined()) object->tensor.impl()->detach_python();
  object->tensor.~Tensor();
  if (type == tensor_type && free_count < kMaxFree) {
    free_objects[free_count++] = self;
  } else {
    PyObject_GC_Del(self);
  }
  Py_DECREF(type);
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->dict);
  const Tensor& tensor = cast(self)->tensor;
  // Only what this object alone keeps alive: a tensor that C++ shares is reachable from there.
  if (tensor.defined() && tensor.impl()->use_count() == 1)
    return traverse_autograd(tensor, visit, arg);
  return 0;
}

int tensor_clear(PyObject* self) {
  Py_CLEAR(cast(self)->dict);
  const Tensor& tensor = cast(self)->tensor;
  if (tensor.defined()) clear_autograd(tensor);
  return 0;
}

// Setting an attribute makes the object one that the collector must know.
int tensor_setattro(PyObject* self, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(self, name, value);
  if (status == 0 && cast(self)->dict) track_tensor(self);
  return status;
}

PyObject* tensor_get_dict(PyObject* self, void*) {
  PyObject* dict = PyObject_GenericGetDict(self, nullptr);
  track_tensor(self);
  return dict;
}

PyObject* tensor_repr(PyObject* self) {
  TD_PYTHON_TRY
  if (hands_over(self)) [[unlikely]]
    return hand_over("__repr__", {self}).release();
  static PyObject* function = nullptr;
  if (!function) {
    PyRef module = PyRef::check(PyImport_ImportModule("taeda._tensor_str"));
    function = PyRef::check(PyObject_GetAttrString(module.get(), "tensor_repr")).release();
  }
  return call_python([&] { return PyObject_CallOneArg(function, self); });
  TD_PYTHON_CATCH(nullptr)
}

// id(x), as in PyTorch.
Py_hash_t tensor_hash(PyObject* self) { return reinterpret_cast<Py_hash_t>(self); }

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef dict_property = {"__dict__", tensor_get_dict, PyObject_GenericSetDict, nullptr,
                             nullptr};

void incref_from_anywhere(void* object) {
  if (PyGILState_Check()) [[likely]] {
    Py_INCREF(static_cast<PyObject*>(object));
    return;
  }
  GilAcquire gil;
  Py_INCREF(static_cast<PyObject*>(object));
}

void decref_from_anywhere(void* object) {
  if (!Py_IsInitialized()) return;  // the interpreter has gone; its memory goes with the process
  if (PyGILState_Check()) [[likely]] {
    Py_DECREF(static_cast<PyObject*>(object));
    return;
  }
  GilAcquire gil;
  Py_DECREF(static_cast<PyObject*>(object));
}

// Methods from the operator table; what is written by hand wins.
void add_generated_methods(PyTypeObject* type) {
  for (const MethodGroup* group = kMethodGroups; group->owner; group++) {
    if (std::string_view(group->owner) != "Tensor") continue;
    for (PyMethodDef* def = group->methods; def->ml_name; def++) {
      PyRef name = PyRef::adopt(interned(def->ml_name));
      if (PyDict_Contains(type->tp_dict, name.get())) continue;
      PyRef method = PyRef::check(PyDescr_NewMethod(type, def));
      check_status(PyDict_SetItem(type->tp_dict, name.get(), method.get()));
    }
  }
  PyType_Modified(type);
}

// torch._C._TensorMeta: the class of Tensor and of its subclasses. It differs from `type` in name.
PyTypeObject* make_metaclass(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_doc,
       const_cast<char*>("The class of Tensor and of the classes that inherit from it.")},
      {0, nullptr},
  };
  PyType_Spec spec = {"taeda._C._TensorMeta", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      slots};
  return add_type(module, "_TensorMeta", &spec, &PyType_Type);
}

}  // namespace

void track_tensor(PyObject* object) {
  if (!PyObject_GC_IsTracked(object)) PyObject_GC_Track(object);
}

PyObject* wrap(Tensor tensor) {
  if (!tensor.defined()) [[unlikely]]
    Py_RETURN_NONE;
  TensorImpl* impl = tensor.impl();
  if (void* existing = impl->python_object()) return new_ref(static_cast<PyObject*>(existing));
  PyObject* self = allocate_exact();
  TensorObject* object = cast(self);
  new (&object->tensor) Tensor(std::move(tensor));
  object->weakrefs = nullptr;
  object->dict = nullptr;
  impl->attach_python(self);
  return self;
}

PyObject* wrap_as(PyTypeObject* type, Tensor tensor) {
  if (type == tensor_type) return wrap(std::move(tensor));
  if (tensor.impl()->python_object()) {
    raise_python(PyExc_RuntimeError,
                 "Creating a new Tensor subclass {} but the raw Tensor object is already "
                 "associated to a python object",
                 type->tp_name);
  }
  PyObject* self = type->tp_alloc(type, 0);  // zeroed, watched by the collector
  if (!self) throw PythonError();
  TensorImpl* impl = tensor.impl();
  if (has_torch_dispatch(type)) impl->keys = impl->keys | Key::kPython;
  new (&cast(self)->tensor) Tensor(std::move(tensor));
  impl->attach_python(self);
  return self;
}

void add_tensor_type(PyObject* module) {
  python_hooks = {incref_from_anywhere, decref_from_anywhere};
  fill_tensor_properties();
  TypeSlots slots = {
      type_slot(Py_tp_dealloc, tensor_dealloc),
      type_slot(Py_tp_traverse, tensor_traverse),
      type_slot(Py_tp_clear, tensor_clear),
      type_slot(Py_tp_setattro, tensor_setattro),
      type_slot(Py_tp_repr, tensor_repr),
      type_slot(Py_tp_hash, tensor_hash),
      {Py_tp_members, members},
      {Py_tp_getset, tensor_properties},
      {Py_tp_doc, const_cast<char*>(
                      "Tensor(*args, **kwargs)\n--\n\nTensor(data) or Tensor(*sizes)\n\nAn array "
                      "of numbers of one dtype on one "
                      "device, with any number of dimensions. Called\ndirectly it makes a tensor "
                      "of the default dtype from data, or an uninitialized one of the\nsizes "
                      "given; torch.tensor keeps the data's own dtype.")},
  };
  add_number_slots(slots);
  add_indexing_slots(slots);
  add_buffer_slots(slots);
  add_construction_slots(slots);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"taeda.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = add_type(module, "Tensor", &spec);
  tensor_type->tp_name = "Tensor";                   // in messages, as PyTorch's
  Py_SET_TYPE(tensor_type, make_metaclass(module));  // which each of its subclasses has too
  PyRef dict = PyRef::check(PyDescr_NewGetSet(tensor_type, &dict_property));
  check_status(PyDict_SetItemString(tensor_type->tp_dict, "__dict__", dict.get()));
  add_tensor_methods(tensor_type);
  add_generated_methods(tensor_type);
}

}  // namespace taeda::python
