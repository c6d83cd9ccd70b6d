#include "python/autograd_hooks.h"

#include "autograd/record.h"
#include "python/autograd.h"
#include "python/call.h"
#include "python/tensor_object.h"

namespace taeda::python {
namespace {

// Calls use(hook) for each hook of the dictionary as it is now; hooks may remove themselves.
template <class F>
void for_each_hook(PyObject* dict, F&& use) {
  PyRef hooks = PyRef::check(PyMapping_Values(dict));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); i++)
    use(PyList_GET_ITEM(hooks.get(), i));
}

std::string hook_name(PyObject* hook) {
  PyRef name = PyRef::adopt(PyObject_GetAttrString(hook, "__name__"));
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return "";
  }
  return " '" + std::string(utf8(name.get())) + "'";
}

// What a hook may return in place of a gradient.
Tensor replacement(PyObject* hook, PyObject* result, const Tensor& original) {
  if (!is_tensor(result) && result != Py_None) {
    raise_python(PyExc_TypeError, "expected Variable, but hook returned '{}'", type_name(result));
  }
  if (!original.defined() || result == Py_None) {
    if (result == Py_None && original.defined())
      raise_python(PyExc_RuntimeError, "hook{} has replaced a non-None gradient by None",
                   hook_name(hook));
    return result == Py_None ? Tensor() : tensor_of(result);
  }
  const Tensor& fresh = tensor_of(result);
  if (fresh.sizes() != original.sizes())
    raise_python(PyExc_RuntimeError, "hook{} has changed the size of value: from {} to {}",
                 hook_name(hook), original.sizes(), fresh.sizes());
  if (fresh.dtype() != original.dtype())
    raise_python(PyExc_RuntimeError, "hook{} has changed the type of value (was {} got {})",
                 hook_name(hook), original.dtype(), fresh.dtype());
  return fresh;
}

// Gradients that a node's hook returned: a tensor, or a tuple or list of as many as it received.
void replace_all(PyObject* hook, PyObject* result, TensorList& grads) {
  if (result == Py_None) return;
  PyRef single;
  if (is_tensor(result)) single = PyRef::check(PyTuple_Pack(1, result));
  PyObject* sequence = single ? single.get() : result;
  if (!PyTuple_Check(sequence) && !PyList_Check(sequence))
    raise_python(PyExc_TypeError, "hook{}: expected a tuple of gradients, but got {}",
                 hook_name(hook), type_name(result));
  PyRef items = PyRef::check(PySequence_Fast(sequence, "hook result"));
  if (PySequence_Fast_GET_SIZE(items.get()) != static_cast<Py_ssize_t>(grads.size()))
    raise_python(PyExc_RuntimeError,
                 "hook{} has returned an incorrect number of values (got {}, but expected {})",
                 hook_name(hook), static_cast<int64_t>(PySequence_Fast_GET_SIZE(items.get())),
                 grads.size());
  for (size_t i = 0; i < grads.size(); i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    if (item == Py_None && grads[i].defined())
      grads[i] = Tensor();
    else
      grads[i] = replacement(hook, item, grads[i]);
  }
}

}  // namespace

void PythonTensorHook::run(TensorList& grads) {
  with_python([&] {
    for_each_hook(dict_, [&](PyObject* hook) {
      PyRef gradient = PyRef::check(wrap(grads[output_nr]));
      PyRef result =
          PyRef::check(call_python([&] { return PyObject_CallOneArg(hook, gradient.get()); }));
      if (result.get() != Py_None)
        grads[output_nr] = replacement(hook, result.get(), grads[output_nr]);
    });
  });
}

void PythonPreHook::run(TensorList& grads) {
  with_python([&] {
    for_each_hook(dict_, [&](PyObject* hook) {
      PyRef result = PyRef::check(
          call_python([&] { return PyObject_CallOneArg(hook, tuple_of(grads).get()); }));
      replace_all(hook, result.get(), grads);
    });
  });
}

void PythonPostHook::run(TensorList& outgoing, const TensorList& incoming) {
  with_python([&] {
    for_each_hook(dict_, [&](PyObject* hook) {
      PyRef result = PyRef::check(call_python([&] {
        return PyObject_CallFunctionObjArgs(hook, tuple_of(outgoing).get(),
                                            tuple_of(incoming).get(), nullptr);
      }));
      replace_all(hook, result.get(), outgoing);
    });
  });
}

void PythonAccumulateHook::run(const Tensor& leaf) {
  with_python([&] {
    for_each_hook(dict_, [&](PyObject* hook) {
      PyRef object = PyRef::check(wrap(leaf));
      PyRef result =
          PyRef::check(call_python([&] { return PyObject_CallOneArg(hook, object.get()); }));
      if (result.get() != Py_None)
        raise_python(PyExc_RuntimeError, "Tensor post accumulate grad hooks should return None.");
    });
  });
}

namespace {

uint32_t number_of_result(const Tensor& tensor) {
  return autograd::grad_fn(tensor) ? autograd::meta_of(tensor)->output_nr : 0;
}

// The tensor's hooks written in Python; null where it has none.
PythonTensorHook* tensor_hook(const Tensor& tensor) {
  const auto find = [&](const auto& hooks) -> PythonTensorHook* {
    for (const auto& h : hooks)
      if (auto* found = dynamic_cast<PythonTensorHook*>(h.get());
          found && found->output_nr == number_of_result(tensor))
        return found;
    return nullptr;
  };
  if (const Ref<autograd::Node> node = autograd::grad_fn(tensor))
    return node->extras() ? find(node->extras()->tensor_pre_hooks) : nullptr;
  const auto* meta = autograd::meta_of(tensor);
  return meta && meta->hooks ? find(meta->hooks->pre_hooks) : nullptr;
}

void add_hooks(const Tensor& tensor, PyObject* dict) {
  autograd::add_tensor_hook(tensor, make_ref<PythonTensorHook>(dict, number_of_result(tensor)));
}

}  // namespace

PyObject* register_tensor_hook(const Tensor& tensor, PyObject* hook) {
  TD_CHECK(tensor.requires_grad(),
           "cannot register a hook on a tensor that doesn't require gradient");
  if (const auto* existing = tensor_hook(tensor)) return add_to_hook_dict(existing->dict(), hook);
  PyRef dict = new_hook_dict();
  add_hooks(tensor, dict.get());
  return add_to_hook_dict(dict.get(), hook);
}

PyObject* backward_hooks(const Tensor& tensor) {
  const auto* hooks = tensor_hook(tensor);
  return new_ref(hooks ? hooks->dict() : Py_None);
}

void set_backward_hooks(const Tensor& tensor, PyObject* dict) {
  if (const auto* existing = tensor_hook(tensor)) autograd::remove_tensor_hook(tensor, existing);
  if (dict == Py_None) return;
  autograd::keep_tensor_hook(tensor, make_ref<PythonTensorHook>(dict, number_of_result(tensor)));
}

PyObject* register_post_accumulate_hook(const Tensor& tensor, PyObject* hook) {
  TD_CHECK(tensor.requires_grad(),
           "cannot register a hook on a tensor that doesn't require gradient");
  TD_CHECK(tensor.is_leaf(), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  if (const auto* meta = autograd::meta_of(tensor); meta && meta->hooks) {
    if (auto* existing = find_hook<PythonAccumulateHook>(meta->hooks->post_accumulate))
      return add_to_hook_dict(existing->dict(), hook);
  }
  PyRef dict = new_hook_dict();
  autograd::add_post_accumulate_hook(tensor, make_ref<PythonAccumulateHook>(dict.get()));
  return add_to_hook_dict(dict.get(), hook);
}

}  // namespace taeda::python
