// The extension module taeda._C.
#include "python/module.h"

#include "python/keyword_hints.h"

#include <cstring>

#include "base/interrupt.h"
#include "python/autograd.h"
#include "python/generated.h"
#include "python/names.h"
#include "python/tensor_object.h"
#include "python/torch_dispatch.h"
#include "python/torch_function.h"
#include "python/trace.h"
#include "python/transforms.h"

namespace taeda::python {
namespace {

PyObject* functions = nullptr;  // owner -> name -> callable

PyObject* owner_dict(const char* owner) {
  PyObject* dict = PyDict_GetItemString(functions, owner);
  if (dict) return dict;
  PyRef made = PyRef::check(PyDict_New());
  check_status(PyDict_SetItemString(functions, owner, made.get()));
  return PyDict_GetItemString(functions, owner);
}

// Generated functions go to _C._by_owner[owner]; taeda/__init__.py publishes them.
void add_generated_functions(PyObject* module) {
  functions = PyRef::check(PyDict_New()).release();
  for (const MethodGroup* group = kMethodGroups; group->owner; group++) {
    const std::string_view owner = group->owner;
    if (owner == "Tensor") continue;
    // torch.linalg.inv is linalg_inv of torch._C._linalg.
    const bool is_prefixed = owner == "linalg" || owner == "special" || owner == "fft";
    const size_t prefix = is_prefixed ? owner.size() + 1 : 0;
    // Where pickle finds the function.
    const std::string path = is_prefixed ? "taeda._C._" : "taeda.";
    PyRef name = PyRef::check(
        PyUnicode_FromString(owner == "torch" ? "taeda" : (path + std::string(owner)).c_str()));
    PyObject* dict = owner_dict(group->owner);
    for (PyMethodDef* def = group->methods; def->ml_name; def++) {
      PyRef function = PyRef::check(PyCFunction_NewEx(def, nullptr, name.get()));
      check_status(PyDict_SetItemString(dict, def->ml_name + prefix, function.get()));
    }
  }
  check_status(PyModule_AddObjectRef(module, "_by_owner", functions));
}

// The type whose objects never override operators, besides Tensor itself.
PyObject* set_parameter_type(PyObject*, PyObject* type) {
  if (!PyType_Check(type) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type)) {
    PyErr_SetString(PyExc_TypeError, "_set_parameter_type() expects a subclass of Tensor");
    return nullptr;
  }
  parameter_type = reinterpret_cast<PyTypeObject*>(new_ref(type));
  Py_RETURN_NONE;
}

PyMethodDef module_functions[] = {
    {"_set_parameter_type", set_parameter_type, METH_O, nullptr},
    {"_result_types", result_types, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// A size of 0 and not -1, with which Python would hand copies of the module to subinterpreters
// without asking.
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "taeda._C",
                          "taeda's core.",
                          0,
                          module_functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

// Nothing that the import makes is garbage: without it the collector walks all objects many times.
struct CollectorPause {
  ~CollectorPause() {
    if (enabled) PyGC_Enable();
  }
  const bool enabled = PyGC_Disable() != 0;
};

}  // namespace

PyRef name_in_package(const char* module) {
  const PyRef package = PyRef::check(PyImport_ImportModule("taeda"));
  const PyRef name = PyRef::check(PyObject_GetAttrString(package.get(), "__name__"));
  return PyRef::check(PyUnicode_FromFormat("%U.%s", name.get(), module));
}

PyObject* public_function(const char* qualified) {
  const char* dot = std::strrchr(qualified, '.');
  const std::string owner(qualified, static_cast<size_t>(dot - qualified));
  if (owner == "Tensor")
    return PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), dot + 1);
  PyObject* dict = PyDict_GetItemString(functions, owner.c_str());
  PyObject* function = dict ? PyDict_GetItemString(dict, dot + 1) : nullptr;
  if (function) return new_ref(function);
  // Hand-written functions live in the module itself.
  PyRef module = PyRef::adopt(PyImport_ImportModule("taeda._C"));
  return module ? PyObject_GetAttrString(module.get(), dot + 1) : nullptr;
}

}  // namespace taeda::python

extern "C" [[gnu::visibility("default")]] PyObject* PyInit__C() {
  using namespace taeda::python;
  // Types and objects are the process's: an interpreter beside the main one would share them
  // without a lock.
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "taeda does not support subinterpreters: import it in the main interpreter, "
                    "and use threads or processes");
    return nullptr;
  }
  static PyObject* made = nullptr;  // again where a program has taken it out of sys.modules
  if (made) return new_ref(made);
  const CollectorPause pause;
  PyRef module = PyRef::adopt(PyModule_Create(&definition));
  if (!module) return nullptr;
  TD_PYTHON_TRY
  out_of_memory_error =
      PyRef::check(PyErr_NewException("taeda.OutOfMemoryError", PyExc_RuntimeError, nullptr))
          .release();
  check_status(PyModule_AddObjectRef(module.get(), "OutOfMemoryError", out_of_memory_error));
  accelerator_error = PyRef::check(PyErr_NewExceptionWithDoc(
                                       "taeda.AcceleratorError",
                                       "A device's driver reports a failure, which may stem from "
                                       "work queued before the call that raises.",
                                       PyExc_RuntimeError, nullptr))
                          .release();
  check_status(PyModule_AddObjectRef(module.get(), "AcceleratorError", accelerator_error));
  linalg_error =
      PyRef::check(PyErr_NewExceptionWithDoc("taeda.linalg.LinAlgError",
                                             "A matrix without the property that a function of "
                                             "torch.linalg needs: singular, not positive-definite.",
                                             PyExc_RuntimeError, nullptr))
          .release();
  check_status(PyModule_AddObjectRef(module.get(), "_LinAlgError", linalg_error));
  check_status(PyModule_AddStringConstant(module.get(), "_compiler", kCompiler));
  add_objects(module.get());
  add_torch_function(module.get());
  add_overridable(module.get());
  add_keyword_hints(module.get());
  add_storage(module.get());
  add_tensor_type(module.get());
  add_generated_functions(module.get());
  add_conversions(module.get());
  add_interop(module.get());
  add_settings(module.get());
  add_memory(module.get());
  add_cuda(module.get());
  add_fallback(module.get());
  add_files(module.get());
  add_worker_channel(module.get());
  add_shared_pages(module.get());
  add_pickler(module.get());
  add_unpickler(module.get());
  add_autograd(module.get());
  add_operators(module.get());
  add_library(module.get());
  add_torch_dispatch(module.get());
  add_optimizer_lists(module.get());
  add_processes(module.get());
  add_profile(module.get());
  add_vmap(module.get());
  add_sparse(module.get());
  add_transforms(module.get());
  add_trace(module.get());
  add_handover(module.get());
  taeda::set_interrupt_hook(look_for_signals);
  made = new_ref(module.get());
  return module.release();
  TD_PYTHON_CATCH(nullptr)
}
