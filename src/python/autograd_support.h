// What the bindings of autograd share: Python objects held by C++ objects that may die on any
// thread, and Python exceptions on their way through the engine.
//
// The engine runs without the GIL. Everything of Python that it calls (hooks, custom functions,
// saved-tensor hooks) takes the GIL itself and turns an exception into a PythonException, which the
// entry point that called the engine turns back.
#pragma once

#include <exception>
#include <optional>

#include "autograd/saved.h"
#include "python/common.h"

namespace taeda::python {

// A Python exception as a C++ object. Copies share it.
class PythonException final : public std::exception {
 public:
  // Takes over the exception that is set. Needs the GIL.
  PythonException();
  PythonException(const PythonException& other) noexcept;
  PythonException& operator=(const PythonException&) = delete;
  ~PythonException() override;
  // Sets the exception again. Needs the GIL.
  void restore() const;
  PyObject* type() const { return type_; }
  const char* what() const noexcept override { return "a Python exception"; }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

// The GIL until the end of the scope; cheap where this thread holds it already.
class EnsureGil {
 public:
  EnsureGil() {
    if (!PyGILState_Check()) taken_.emplace();
  }

 private:
  std::optional<GilAcquire> taken_;
};

// Runs `call` with the GIL; Python errors inside leave as PythonException.
template <class F>
auto with_python(F&& call) {
  const EnsureGil gil;
  try {
    return call();
  } catch (const PythonError&) {
    throw PythonException();
  } catch (...) {
    park_if_ended();
    throw;
  }
}

// Drops a reference on any thread, also one without the GIL, also after the interpreter has gone.
void drop_anywhere(PyObject* object);

// A Python object owned by C++ objects.
class PythonHolder final : public RefCounted {
 public:
  explicit PythonHolder(PyObject* object) : object_(new_ref(object)) {}
  ~PythonHolder() override { drop_anywhere(object_); }
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

// A tensor, or undefined for None; TypeError naming `what` for anything else.
Tensor tensor_or_none(PyObject* object, const char* what);
// A tuple of tensors, None for undefined ones.
PyRef tuple_of(const TensorList& tensors);

// An OrderedDict of hooks that C++ calls, and the handle that removes one of them.
PyRef new_hook_dict();
PyObject* add_to_hook_dict(PyObject* dict, PyObject* hook);

// The Python object of a node; None for null. New reference.
// grad_fn._saved_NAME, grad_fn._raw_saved_NAME: a new reference; null where `node` keeps no NAME.
PyObject* saved_attribute(autograd::Node& node, std::string_view name);
// Appends the names of these attributes to a list.
void append_saved_names(autograd::Node& node, PyObject* list);
// Hooks that call two Python functions.
Ref<autograd::SavedTensorHooks> make_saved_hooks(PyObject* pack, PyObject* unpack);
void add_saved_tensor_type(PyObject* module);

PyObject* wrap_node(Ref<autograd::Node> node);
// The node of such an object; null for None. TypeError for others.
Ref<autograd::Node> to_node(PyObject* object);
bool is_node(PyObject* object);

// For the garbage collector: the Python objects that only `node` keeps alive.
int traverse_node(const autograd::Node& node, visitproc visit, void* arg);
void clear_node(autograd::Node& node);

void add_node_type(PyObject* module);         // autograd_node.cc
void add_function_type(PyObject* module);     // autograd_function.cc
void add_engine_functions(PyObject* module);  // autograd_engine.cc

// The context object of a custom function's node (borrowed), or null for other nodes.
PyObject* context_of(const autograd::Node& node);

}  // namespace taeda::python
