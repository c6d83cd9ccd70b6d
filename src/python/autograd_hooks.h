// Hooks written in Python, as the engine sees them: each owns a dictionary of callables that run in
// order.
#pragma once

#include "autograd/hooks.h"
#include "python/autograd_support.h"

namespace taeda::python {

// Of one result of a node, or of a leaf: hook(grad) -> grad or None.
class PythonTensorHook final : public autograd::PreHook {
 public:
  PythonTensorHook(PyObject* dict, uint32_t output_nr)
      : output_nr(output_nr), dict_(new_ref(dict)) {}
  ~PythonTensorHook() override { drop_anywhere(dict_); }
  void run(TensorList& grads) override;
  PyObject* dict() const { return dict_; }

  const uint32_t output_nr;

 private:
  PyObject* dict_;
};

// node.register_prehook: hook(grad_outputs) -> grad_outputs or None.
class PythonPreHook final : public autograd::PreHook {
 public:
  explicit PythonPreHook(PyObject* dict) : dict_(new_ref(dict)) {}
  ~PythonPreHook() override { drop_anywhere(dict_); }
  void run(TensorList& grads) override;
  PyObject* dict() const { return dict_; }

 private:
  PyObject* dict_;
};

// node.register_hook: hook(grad_inputs, grad_outputs) -> grad_inputs or None.
class PythonPostHook final : public autograd::PostHook {
 public:
  explicit PythonPostHook(PyObject* dict) : dict_(new_ref(dict)) {}
  ~PythonPostHook() override { drop_anywhere(dict_); }
  void run(TensorList& outgoing, const TensorList& incoming) override;
  PyObject* dict() const { return dict_; }

 private:
  PyObject* dict_;
};

// x.register_post_accumulate_grad_hook: hook(x).
class PythonAccumulateHook final : public autograd::AccumulateHook {
 public:
  explicit PythonAccumulateHook(PyObject* dict) : dict_(new_ref(dict)) {}
  ~PythonAccumulateHook() override { drop_anywhere(dict_); }
  void run(const Tensor& leaf) override;
  PyObject* dict() const { return dict_; }

 private:
  PyObject* dict_;
};

// The first hook of type H in a list; null where there is none.
template <class H, class Hooks>
H* find_hook(const Hooks& hooks) {
  for (const auto& hook : hooks)
    if (auto* found = dynamic_cast<H*>(hook.get())) return found;
  return nullptr;
}

}  // namespace taeda::python
