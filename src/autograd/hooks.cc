#include "autograd/hooks.h"

#include <algorithm>

#include "autograd/math.h"
#include "autograd/record.h"
#include "base/interrupt.h"
#include "taeda/autograd.h"

namespace taeda {
namespace autograd {
namespace {

template <class T, class Hook>
void erase(std::vector<Ref<T>>& hooks, const Hook* hook) {
  std::erase_if(hooks, [&](const Ref<T>& h) { return h.get() == hook; });
}

TensorHooks& hooks_of(AutogradMeta& meta) {
  if (!meta.hooks) meta.hooks = std::make_unique<TensorHooks>();
  return *meta.hooks;
}

struct RetainGrad final : PreHook {
  Ref<GradSlot> slot;
  uint32_t output_nr;
  RetainGrad(Ref<GradSlot> slot, uint32_t output_nr)
      : slot(std::move(slot)), output_nr(output_nr) {}
  void run(TensorList& grads) override;
};

struct FunctionHook final : PreHook {
  uint64_t id;
  uint32_t output_nr;
  GradHook function;
  FunctionHook(uint64_t id, uint32_t output_nr, GradHook function)
      : id(id), output_nr(output_nr), function(std::move(function)) {}
  void run(TensorList& grads) override {
    Tensor& gradient = grads[output_nr];
    if (!gradient.defined()) return;
    Tensor replaced = function(gradient);
    if (!replaced.defined()) return;
    TD_CHECK(replaced.sizes() == gradient.sizes() && replaced.dtype() == gradient.dtype(),
             "hook has changed the size or dtype of value: from {} {} to {} {}", gradient.sizes(),
             gradient.dtype(), replaced.sizes(), replaced.dtype());
    gradient = std::move(replaced);
  }
};

std::atomic<uint64_t> next_hook{1};

template <class F>
void with_hooks(const Tensor& t, F&& use) {
  if (const Ref<Node> node = grad_fn(t)) {
    if (node->extras()) use(node->extras()->tensor_pre_hooks);
  } else if (AutogradMeta* meta = meta_of(t); meta && meta->hooks) {
    use(meta->hooks->pre_hooks);
  }
}

void RetainGrad::run(TensorList& grads) {
  const Tensor& gradient = grads[output_nr];
  if (!gradient.defined()) return;
  const DeferInterrupts while_locked;
  std::lock_guard<std::mutex> lock(slot->mutex);
  if (!slot->grad.defined())
    slot->grad = thread_modes.grad_enabled ? gradient : math::clone(gradient);
  else
    slot->grad = math::add(slot->grad, gradient);
}

}  // namespace

void add_tensor_hook(const Tensor& t, Ref<PreHook> hook) {
  TD_CHECK(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  keep_tensor_hook(t, std::move(hook));
}

void keep_tensor_hook(const Tensor& t, Ref<PreHook> hook) {
  if (const Ref<Node> node = grad_fn(t))
    node->make_extras().tensor_pre_hooks.push_back(std::move(hook));
  else
    hooks_of(make_meta(t.impl())).pre_hooks.push_back(std::move(hook));
}

void remove_tensor_hook(const Tensor& t, const PreHook* hook) {
  with_hooks(t, [&](auto& hooks) { erase(hooks, hook); });
}

void add_post_accumulate_hook(const Tensor& leaf, Ref<AccumulateHook> hook) {
  TD_CHECK(requires_grad(leaf), "cannot register a hook on a tensor that doesn't require gradient");
  TD_CHECK(!grad_fn(leaf), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  hooks_of(make_meta(leaf.impl())).post_accumulate.push_back(std::move(hook));
}

void remove_post_accumulate_hook(const Tensor& leaf, const AccumulateHook* hook) {
  AutogradMeta* meta = meta_of(leaf);
  if (meta && meta->hooks) erase(meta->hooks->post_accumulate, hook);
}

}  // namespace autograd

uint64_t register_hook(const Tensor& t, GradHook hook) {
  const uint64_t id = autograd::next_hook++;
  const Ref<autograd::Node> node = autograd::grad_fn(t);
  const uint32_t output_nr = node ? autograd::meta_of(t)->output_nr : 0;
  autograd::add_tensor_hook(t, make_ref<autograd::FunctionHook>(id, output_nr, std::move(hook)));
  return id;
}

void remove_hook(const Tensor& t, uint64_t id) {
  autograd::with_hooks(t, [&](auto& hooks) {
    std::erase_if(hooks, [&](const Ref<autograd::PreHook>& h) {
      const auto* function = dynamic_cast<const autograd::FunctionHook*>(h.get());
      return function && function->id == id;
    });
  });
}

void Tensor::retain_grad() {
  TD_CHECK(requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  const Ref<autograd::Node> node = autograd::grad_fn(*this);
  if (!node) return;
  autograd::AutogradMeta& meta = *autograd::meta_of(*this);
  if (meta.retained) return;
  meta.retained = make_ref<autograd::GradSlot>();
  node->make_extras().retain_grad.emplace_back(
      meta.output_nr, make_ref<autograd::RetainGrad>(meta.retained, meta.output_nr));
}

}  // namespace taeda
