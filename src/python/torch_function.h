// The __torch_function__ protocol: classes that take part in operators in their own way
// (torch.overrides).
//
// An argument whose class has a __torch_function__ of its own, or an active TorchFunctionMode,
// receives the call instead of the operator. Exact Tensors and Parameters never do, which the
// argument parser sees from the type alone.
#pragma once

#include <initializer_list>

#include "python/common.h"
#include "python/tensor_object.h"

namespace taeda::python {

// Whether this object's class overrides operators (false for Tensor, Parameter and builtin types).
bool overrides_torch_function(PyObject* object);

// The same for an argument of a call: also true where an element of a list or tuple overrides.
bool is_overridden_by(PyObject* argument);

// Modes that are active on any thread. Asked before the thread's own count, because that costs
// more.
extern int modes_of_all_threads;
bool mode_is_active();

// Whether a mode or the tensor's class takes what is done with the tensor: for slots and
// properties, which have no arguments to parse.
inline bool hands_over(PyObject* tensor) {
  if (modes_of_all_threads > 0 && mode_is_active()) [[unlikely]]
    return true;
  return !is_exact_tensor(tensor) && overrides_torch_function(tensor);
}

// Hands over the call of Tensor.METHOD; the arguments begin with self. PythonError on failure.
PyRef hand_over(const char* method, std::initializer_list<PyObject*> args);

// Hands a call of `function` to the overriding arguments (and modes). Sets an exception and returns
// null on failure.
PyObject* call_torch_function(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames);

// The same for functions that PyTorch writes in Python: they hand on required arguments by position
// and the others by name, filled in.
PyObject* call_torch_function_by_name(PyObject* function, PyObject* const* args, Py_ssize_t nargs,
                                      PyObject* kwnames);

// function(*args, **kwargs) with what a caller of __torch_function__ has given: args is null or any
// sequence, kwargs null, None or a dict (TypeError for others).
PyRef call_with(PyObject* function, PyObject* args, PyObject* kwargs);

// Results of this function stay plain Tensors in subclasses: getters of grad, shape and the like.
bool keeps_plain_result(PyObject* function);

// Subclasses do not override operators on this thread until the end of the scope.
class DisableTorchFunctionSubclass {
 public:
  DisableTorchFunctionSubclass();
  ~DisableTorchFunctionSubclass();
  DisableTorchFunctionSubclass(const DisableTorchFunctionSubclass&) = delete;
  DisableTorchFunctionSubclass& operator=(const DisableTorchFunctionSubclass&) = delete;
};

// The calling thread's modes and switches, for a thread that goes on with its work.
struct TorchFunctionState {
  PyRef modes;  // a list; may be null
  int subclass_disabled = 0;
};
TorchFunctionState torch_function_state();
void set_torch_function_state(const TorchFunctionState& state);

// Adds has_torch_function, handle_torch_function's core, the switches and the mode stack to the
// module.
void add_torch_function(PyObject* module);

// Adds the decorator _overridable, which gives Python functions the protocol.
void add_overridable(PyObject* module);

}  // namespace taeda::python
