// Python functions that subclasses of Tensor and modes override: `_overridable(function)`.
//
// The operators of the table look for __torch_function__ while they parse their arguments; a public
// function written in Python is put into one of these objects instead. It looks at its arguments as
// they come (lists and tuples one level deep) and hands the call over under its own name, or calls
// the function with the same arguments: no Python frame is added, so warnings point where they did.
// A function that nothing overrides is wrapped to say more of its keywords (keyword_hints.h).
#include "python/arguments.h"
#include "python/keyword_hints.h"
#include "python/module.h"
#include "python/torch_function.h"

#include <structmember.h>

namespace taeda::python {
namespace {

struct OverridableObject {
  PyObject_HEAD PyObject* function;
  PyObject* dict;
  PyObject* weak_references;
  vectorcallfunc call;
};

OverridableObject* cast(PyObject* object) { return reinterpret_cast<OverridableObject*>(object); }

PyObject* call_wrapped(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  PyObject* const function = cast(self)->function;
  if (!function) [[unlikely]] {  // the garbage collector has begun to take it apart
    PyErr_SetString(PyExc_RuntimeError, "a function was called while it was deleted");
    return nullptr;
  }
  PyObject* result = PyObject_Vectorcall(function, args, nargsf, kwnames);
  return result ? result : hint_at_keywords(function, kwnames);
}

PyObject* call_overridable(PyObject* self, PyObject* const* args, size_t nargsf,
                           PyObject* kwnames) {
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  const Py_ssize_t count = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  bool overridden = Arguments::torch_function_modes > 0;
  for (Py_ssize_t i = 0; i < count && !overridden; i++) {
    overridden = is_overridden_by(args[i]);
  }
  if (overridden) [[unlikely]]
    return call_torch_function_by_name(self, args, nargs, kwnames);
  return call_wrapped(self, args, nargsf, kwnames);
}

// As functools.wraps: the wrapper answers for its function, also to inspect.signature.
void take_names(OverridableObject* self) {
  for (const char* name : {"__module__", "__name__", "__qualname__", "__doc__"}) {
    PyRef value = PyRef::check(PyObject_GetAttrString(self->function, name));
    check_status(PyDict_SetItemString(self->dict, name, value.get()));
  }
  check_status(PyDict_SetItemString(self->dict, "__wrapped__", self->function));
}

PyTypeObject* overridable_type = nullptr;

PyRef wrap(PyObject* function, vectorcallfunc call) {
  PyRef made = PyRef::check(overridable_type->tp_alloc(overridable_type, 0));
  cast(made.get())->function = new_ref(function);
  cast(made.get())->dict = PyRef::check(PyDict_New()).release();
  cast(made.get())->call = call;
  take_names(cast(made.get()));
  return made;
}

PyObject* overridable(PyObject*, PyObject* function) {
  TD_PYTHON_TRY
  if (!PyFunction_Check(function)) {
    raise_python(PyExc_TypeError, "_overridable() expects a function, got {}", type_name(function));
  }
  return wrap(function, call_overridable).release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* value = PyObject_GenericGetAttr(self, name);
  if (value || !PyErr_ExceptionMatches(PyExc_AttributeError) || !cast(self)->function) return value;
  PyErr_Clear();
  return PyObject_GetAttr(cast(self)->function, name);  // __code__, __defaults__, ...
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : new_ref(self);
}

PyObject* repr(PyObject* self) { return PyObject_Repr(cast(self)->function); }

// Pickled by name, as functions are.
PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

// Programs ask isinstance(f, types.FunctionType) to tell functions from modules.
PyObject* shown_class(PyObject*, void*) {
  return new_ref(reinterpret_cast<PyObject*>(&PyFunction_Type));
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->function);
  Py_VISIT(cast(self)->dict);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(cast(self)->function);
  Py_CLEAR(cast(self)->dict);
  return 0;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weak_references) PyObject_ClearWeakRefs(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(OverridableObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OverridableObject, weak_references), READONLY,
     nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OverridableObject, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"__class__", shown_class, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
    {Py_tp_setattro, reinterpret_cast<void*>(PyObject_GenericSetAttr)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"taeda.overridable_function", sizeof(OverridableObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

PyMethodDef functions[] = {
    {"_overridable", overridable, METH_O,
     "_overridable(function) -> function\n\nDecorator: the function with __torch_function__ "
     "looked for in its arguments first."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyRef hinting_function(PyObject* function) { return wrap(function, call_wrapped); }

void add_overridable(PyObject* module) {
  overridable_type =
      reinterpret_cast<PyTypeObject*>(PyRef::check(PyType_FromSpec(&spec)).release());
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
