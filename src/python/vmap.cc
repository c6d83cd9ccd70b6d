// What torch.func.vmap is made of: levels, and the tensors that hide a batch dimension.
#include "autograd/differentiated.h"
#include "autograd/forward.h"
#include "op/movedim.h"
#include "ops/batching/rules.h"
#include "python/autograd_support.h"
#include "python/call.h"
#include "python/module.h"
#include "python/objects.h"
#include "python/tensor_object.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

using batching::Level;
using batching::Randomness;

struct RandomnessName {
  const char* name;
  Randomness value;
};
constexpr RandomnessName kRandomness[] = {{"error", Randomness::kError},
                                          {"different", Randomness::kDifferent},
                                          {"same", Randomness::kSame}};

// The active level of that depth.
Level& level_at(int64_t depth) {
  Level* level = batching::current();
  while (level && level->depth > depth) level = level->outer.get();
  TD_CHECK(level && level->depth == depth, "vmap: there is no level {} on this thread", depth);
  return *level;
}

// _vmap_enter(batch_size, randomness) -> depth
PyObject* enter(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  long long size;
  const char* randomness;
  if (!PyArg_ParseTuple(args, "Ls:_vmap_enter", &size, &randomness)) return nullptr;
  for (const auto& [name, value] : kRandomness)
    if (std::strcmp(name, randomness) == 0)
      return PyLong_FromLongLong(batching::enter(size, value).depth);
  raise_python(PyExc_RuntimeError,
               "Only allowed values for randomness are 'error', 'different', or 'same'. Got {}",
               randomness);
  TD_PYTHON_CATCH(nullptr)
}

PyObject* leave(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  batching::leave();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* depth(PyObject*, PyObject*) {
  return PyLong_FromLongLong(batching::active() ? batching::active()->depth : 0);
}

const char* name_of(Randomness randomness) {
  for (const auto& [name, value] : kRandomness)
    if (value == randomness) return name;
  return "";
}

// _add_batch_dim(tensor, dim, depth) -> the tensor that hides dimension dim
PyObject* add_batch_dim(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* object;
  long long dim, at;
  if (!PyArg_ParseTuple(args, "OLL:_add_batch_dim", &object, &dim, &at)) return nullptr;
  const Tensor t = tensor_or_none(object, "_add_batch_dim");
  Level& level = level_at(at);
  Tensor value = t;
  if (dim != 0) {
    const batching::Outside outside(level);
    value = op::movedim(t, DimVector{dim}, DimVector{0});
  }
  return wrap(batching::wrap(value, level));
  TD_PYTHON_CATCH(nullptr)
}

// _remove_batch_dim(tensor, depth, dim) -> the tensor with the batch as dimension dim; what has no
// batch is repeated
PyObject* remove_batch_dim(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* object;
  long long at, dim;
  if (!PyArg_ParseTuple(args, "OLL:_remove_batch_dim", &object, &at, &dim)) return nullptr;
  const Tensor t = tensor_or_none(object, "_remove_batch_dim");
  Level& level = level_at(at);
  TD_CHECK_INDEX(dim >= -(t.dim() + 1) && dim <= t.dim(),
                 "Dimension out of range (expected to be in range of [{}, {}], but got {})",
                 -(t.dim() + 1), t.dim(), static_cast<int64_t>(dim));
  const batching::Outside outside(level);
  Tensor value = batching::value_at(t, level);
  if (!value.defined()) value = batching::expand_batch(t, level.size);
  return wrap(dim == 0 ? value : op::movedim(value, DimVector{0}, DimVector{dim}));
  TD_PYTHON_CATCH(nullptr)
}

// _lift(tensor) -> a tensor of the innermost level of vmap or functionalize for one of the code
// outside; other tensors as they are
PyObject* lift(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  const Tensor t = tensor_or_none(object, "_lift");
  Tensor lifted = autograd::lift(t);
  return lifted.is_same(t) ? new_ref(object) : wrap(std::move(lifted));
  TD_PYTHON_CATCH(nullptr)
}

// _batch_value(tensor, depth) -> (what it stands for outside of that level, where its batch lies
// there); None where all samples share it
PyObject* batch_value(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* object;
  long long at;
  if (!PyArg_ParseTuple(args, "OL:_batch_value", &object, &at)) return nullptr;
  const Tensor t = tensor_or_none(object, "_batch_value");
  const Level& level = level_at(at);
  if (!batching::is_at(t, level)) return Py_BuildValue("(OO)", object, Py_None);
  const PyRef content = PyRef::check(wrap(batching::content_of(t)));
  const bool shared = batching::shared_at(t, level).defined();
  return shared ? Py_BuildValue("(OO)", content.get(), Py_None)
                : Py_BuildValue("(Oi)", content.get(), 0);
  TD_PYTHON_CATCH(nullptr)
}

// _batch_level(tensor) -> the depth of the level it is batched at, -1 where that has ended, 0 for
// others
PyObject* batch_level(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  const Tensor t = tensor_or_none(object, "_batch_level");
  if (!batching::is_batched(t)) return PyLong_FromLong(0);
  return PyLong_FromLongLong(batching::has_ended(t) ? -1 : batching::level_of(t).depth);
  TD_PYTHON_CATCH(nullptr)
}

// _is_differentiated_below(tensor) -> whether what a tensor of a level is outside of that requires
// grad or carries a tangent
PyObject* is_differentiated_below(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  return PyBool_FromLong(autograd::differentiated_outside_of_level(
      tensor_or_none(object, "_is_differentiated_below")));
  TD_PYTHON_CATCH(nullptr)
}

// _vmap_info(depth) -> (batch_size, randomness)
PyObject* info(PyObject*, PyObject* value) {
  TD_PYTHON_TRY
  const Level& level = level_at(PyLong_AsLongLong(value));
  return Py_BuildValue("(Ls)", static_cast<long long>(level.size), name_of(level.randomness));
  TD_PYTHON_CATCH(nullptr)
}

// _call_outside(depth, recording, function) -> function(), called as by the code outside of that
// level, which records where `recording`
PyObject* call_outside(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  long long at;
  int recording;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "LpO:_call_outside", &at, &recording, &function)) return nullptr;
  const Level& level = level_at(at);
  const batching::Outside outside(level);
  thread_modes.grad_enabled = recording && level.outside.grad_enabled;
  return call_python([&] { return PyObject_CallNoArgs(function); });
  TD_PYTHON_CATCH(nullptr)
}

// _exclude_autograd(bool) -> bool: whether nothing is recorded on this thread; the state before
PyObject* exclude_autograd(PyObject*, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  const bool before = thread_modes.excluded.has(Key::kAutograd);
  thread_modes.excluded =
      on ? thread_modes.excluded | Key::kAutograd : thread_modes.excluded - Key::kAutograd;
  if (batching::current()) batching::current()->records = !on;
  return PyBool_FromLong(before);
}

PyMethodDef functions[] = {
    {"_vmap_enter", enter, METH_VARARGS, nullptr},
    {"_vmap_exit", leave, METH_NOARGS, nullptr},
    {"_vmap_level", depth, METH_NOARGS, nullptr},
    {"_vmap_info", info, METH_O, nullptr},
    {"_call_outside", call_outside, METH_VARARGS, nullptr},
    {"_add_batch_dim", add_batch_dim, METH_VARARGS, nullptr},
    {"_remove_batch_dim", remove_batch_dim, METH_VARARGS, nullptr},
    {"_lift", lift, METH_O, nullptr},
    {"_batch_value", batch_value, METH_VARARGS, nullptr},
    {"_batch_level", batch_level, METH_O, nullptr},
    {"_is_differentiated_below", is_differentiated_below, METH_O, nullptr},
    {"_exclude_autograd", exclude_autograd, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_vmap(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
