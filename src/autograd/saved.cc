#include "autograd/saved.h"

#include "autograd/anomaly.h"
#include "autograd/forward.h"
#include "autograd/math.h"
#include "autograd/record.h"
#include "autograd/view.h"
#include "base/handover.h"
#include "taeda/autograd.h"

namespace taeda::autograd {
namespace {

struct HookStack {
  std::vector<Ref<SavedTensorHooks>> hooks;
  std::string disabled;  // the message to raise; empty: enabled
};
thread_local HookStack hook_stack;

HookStack get_hooks() { return hook_stack; }
void set_hooks(HookStack hooks) { hook_stack = std::move(hooks); }
const CarriedValue<get_hooks, set_hooks> carried_hooks;

void check_hooks_enabled() {
  if (!hook_stack.disabled.empty()) fail(ErrorKind::kRuntime, "{}", hook_stack.disabled);
}

constexpr const char* kReleasedMessage =
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or "
    "autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to "
    "access saved tensors "
    "after calling backward.";

// While a node's lock is held, what reset() drops is kept here: destructors may take any time and
// other locks.
thread_local std::vector<Ref<RefCounted>>* trash_objects = nullptr;
thread_local std::vector<Ref<TensorImpl>>* trash_tensors = nullptr;

}  // namespace

// What is kept instead of the tensor when hooks packed it.
struct SavedTensor::Hooked final : RefCounted {
  Ref<SavedTensorHooks> hooks;
  Ref<RefCounted> packed;
  bool leaf = false;
  Tensor tangents;  // empty; shares those of the packed tensor, which hooks know nothing of

  void keep_tangents(const Tensor& of) {
    if (!any_dual_level() || !is_inexact(of.dtype())) return;
    const ExcludeKeys plain(KeySet(Key::kAutograd) | Key::kForward);
    tangents = math::zeros(IntSpan({0}), of.dtype(), of.device());
    share_tangent(tangents, of);
  }
  Tensor with_tangents(const Tensor& unpacked) const {
    if (!tangents.defined()) return unpacked;
    refresh_tangent_key(tangents);  // a result gets its tangent after it is saved
    if (level_of(tangents) == 0) return unpacked;
    Tensor alias = math::alias(unpacked);
    share_tangent(alias, tangents);
    return alias;
  }
};

void push_saved_tensor_hooks(Ref<SavedTensorHooks> hooks) {
  check_hooks_enabled();
  hook_stack.hooks.push_back(std::move(hooks));
}
void pop_saved_tensor_hooks() {
  if (!hook_stack.hooks.empty()) hook_stack.hooks.pop_back();
}
void disable_saved_tensor_hooks(std::string message) {
  if (!hook_stack.hooks.empty()) fail(ErrorKind::kRuntime, "{}", message);
  hook_stack.disabled = std::move(message);
}
void enable_saved_tensor_hooks() { hook_stack.disabled.clear(); }
bool saved_tensor_hooks_enabled() { return hook_stack.disabled.empty(); }
std::string saved_tensor_hooks_disabled_message() { return hook_stack.disabled; }

ReleaseScope::ReleaseScope(const Node& node)
    : node_(node), outer_objects_(trash_objects), outer_tensors_(trash_tensors) {
  trash_objects = &objects_;
  trash_tensors = &tensors_;
  node_.lock();
}
ReleaseScope::~ReleaseScope() {
  node_.unlock();
  trash_objects = outer_objects_;
  trash_tensors = outer_tensors_;
}

// An alias without history, except for leaves that require grad: those cannot be written in place
// while recording, so that holding the tensor itself can never close a cycle through a history that
// it gets later. A constant of a Python class is held itself too: the class sees no detach.
SavedTensor::SavedTensor(SavedTensor&&) noexcept = default;
SavedTensor& SavedTensor::operator=(SavedTensor&&) noexcept = default;
SavedTensor::~SavedTensor() = default;

void SavedTensor::save(const Tensor& tensor, bool is_output) {
  TD_CHECK(!tensor.is_inference(),
           "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
           "inference mode in "
           "computation tracked by autograd. To work around this, you can make a clone to get a "
           "normal tensor and use it "
           "in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
  defined_ = true;
  is_output_ = is_output;
  requires_grad_ = autograd::requires_grad(tensor);
  const bool leaf = requires_grad_ && !is_output && !grad_fn(tensor);
  if (requires_grad_ && !is_output && !leaf) grad_fn_ = grad_fn(tensor);
  output_nr_ = meta_of(tensor) ? meta_of(tensor)->output_nr : 0;
  // Hooks see no numbers (the 2 of x * 2).
  if (!hook_stack.hooks.empty() && !tensor.impl()->wrapped_number) [[unlikely]]
    return pack(tensor, grad_fn(tensor), hook_stack.hooks.back());
  version_ = tensor.version();
  const bool of_class = tensor.impl()->keys.has(Key::kPython);
  if (leaf || (of_class && !requires_grad_ && !is_output)) {
    tensor_ = tensor.ref();
  } else {
    Tensor alias = math::alias(tensor);
    share_tangent(alias, tensor);
    tensor_ = alias.take();
  }
}

// Hooks see the tensor as it was saved, with its history. A hook that keeps what it is given would
// keep the node of a result alive for ever, through that history: so it has it for the call only.
void SavedTensor::pack(const Tensor& tensor, const Ref<Node>& history,
                       Ref<SavedTensorHooks> hooks) {
  Ref<Hooked> hooked = make_ref<Hooked>();
  hooked->hooks = std::move(hooks);
  hooked->leaf = requires_grad_ && !is_output_ && !grad_fn_;
  if (hooked->leaf) grad_fn_ = gradient_edge(tensor).node;
  hooked->keep_tangents(tensor);
  const GradMode no_grad(false);
  const uint32_t before = tensor.version();
  if (hooked->leaf) {
    hooked->packed = hooked->hooks->pack(tensor);
  } else {
    const Tensor alias = math::alias(tensor);
    if (requires_grad_ && history) set_gradient_edge(alias, history, output_nr_);
    hooked->packed = hooked->hooks->pack(alias);
    if (is_output_) set_gradient_edge(alias, nullptr, 0);
  }
  TD_CHECK(tensor.version() == before,
           "A saved tensor pack hook is modifying its input in place. Tensors provided as input to "
           "pack hook can not be modified by in-place operations as this can lead to unexpected "
           "side-effects. Please open an issue if you need to perform in-place operations on the "
           "input to a pack hook.");
  hooked_ = hooked;
}

Tensor SavedTensor::unpack(Node& node, bool with_history) const {
  if (!defined_) return {};
  // A reference is taken under the node's lock: another thread's backward may be about to release
  // the tensor.
  Ref<TensorImpl> impl;
  Ref<RefCounted> hooked;
  Ref<Node> history;
  {
    node.lock();
    const bool released = released_;
    if (!released) {
      impl = tensor_;
      hooked = hooked_;
      history = grad_fn_;
    }
    node.unlock();
    if (released) fail(ErrorKind::kRuntime, "{}", kReleasedMessage);
  }
  if (hooked) [[unlikely]]
    return unpack_hooked(static_cast<Hooked&>(*hooked), history, node, with_history);
  Tensor tensor(std::move(impl));
  if (tensor.version() != version_) [[unlikely]]
    fail_version(tensor, history, node);
  if (any_dual_level()) [[unlikely]]
    refresh_tangent_key(tensor);
  if (!with_history || !requires_grad_ || (!is_output_ && !history)) return tensor;
  return attach_history(tensor, history, node);
}

Tensor SavedTensor::attach_history(const Tensor& tensor, const Ref<Node>& history,
                                   Node& node) const {
  Tensor alias = math::alias(tensor);
  share_tangent(alias, tensor);
  if (!is_output_) {
    set_gradient_edge(alias, history, output_nr_);
  } else if (Node* owner = node.owner()) {
    // The operator wrote into a view: its result's history is that view of what the owner made of
    // the base.
    attach_view_history(alias, *owner);
  } else {
    set_gradient_edge(alias, Ref<Node>(&node), output_nr_);
  }
  return alias;
}

Tensor SavedTensor::unpack_hooked(Hooked& hooked, const Ref<Node>& history, Node& node,
                                  bool with_history) const {
  Tensor tensor = hooked.hooks->unpack(*hooked.packed);
  TD_CHECK(tensor.defined(), "saved tensor hooks: unpack returned no tensor");
  tensor = hooked.with_tangents(tensor);
  if (!requires_grad_ && !autograd::requires_grad(tensor)) return tensor;
  if (!requires_grad_) {
    Tensor alias = math::alias(tensor);
    share_tangent(alias, tensor);
    return alias;
  }
  if (!with_history) return tensor;
  if (hooked.leaf) {
    Tensor alias = math::alias(tensor);
    share_tangent(alias, tensor);
    set_gradient_edge(alias, history, 0);  // what arrives goes to the leaf that was packed
    return alias;
  }
  return attach_history(tensor, history, node);
}

void SavedTensor::register_hooks(Node& node, Ref<SavedTensorHooks> hooks) {
  TD_CHECK(defined_,
           "Calling register_hooks on a saved tensor with value None is forbidden. If your tensor "
           "was not None, it was "
           "probably optimized away.");
  const auto check = [](bool released, bool hooked) {
    TD_CHECK(
        !released,
        "Calling register_hooks on a saved tensor after it has been freed: backward() and "
        "grad() free what a graph has saved. Give them retain_graph=True to go through the graph "
        "a second time.");
    TD_CHECK(!hooked,
             "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
             "only one pair of hooks is allowed at a time.");
  };
  SavedTensor packed;
  packed.requires_grad_ = requires_grad_;
  packed.is_output_ = is_output_;
  packed.output_nr_ = output_nr_;
  node.lock();
  const bool released = released_, hooked = static_cast<bool>(hooked_);
  Ref<TensorImpl> impl = tensor_;
  packed.grad_fn_ = grad_fn_;
  node.unlock();
  check(released, hooked);
  const Ref<Node> history = is_output_ ? Ref<Node>(&node) : packed.grad_fn_;
  packed.pack(Tensor(impl), history, std::move(hooks));
  // The hook, or another thread, may have released the tensor meanwhile, or set hooks.
  node.lock();
  const bool released_since = released_, hooked_since = static_cast<bool>(hooked_);
  if (!released_since && !hooked_since) {
    hooked_ = std::move(packed.hooked_);
    grad_fn_ = packed.grad_fn_;
    tensor_ = nullptr;  // `impl` still holds it
  }
  node.unlock();
  check(released_since, hooked_since);
}

void SavedVisitor::show(const char* name, SavedTensor& t) { field(name, &t); }
void SavedVisitor::show(const char* name, std::vector<SavedTensor>& list) { field(name, &list); }
void SavedVisitor::show(const char* name, bool value) { field(name, value); }
void SavedVisitor::show(const char* name, int64_t value) { field(name, value); }
void SavedVisitor::show(const char* name, double value) { field(name, value); }
void SavedVisitor::show(const char* name, DType value) { field(name, value); }
void SavedVisitor::show(const char* name, const Scalar& value) { field(name, &value); }
void SavedVisitor::show(const char* name, const DimVector& sizes) { field(name, IntSpan(sizes)); }
void SavedVisitor::show(const char* name, const std::vector<double>& values) {
  field(name, Span<const double>(values));
}
void SavedVisitor::show(const char* name, const std::string& text) {
  field(name, std::string_view(text));
}

void SavedTensor::reset() {
  if (!defined_) return;
  released_ = true;
  if (trash_tensors) {
    if (tensor_) trash_tensors->push_back(std::move(tensor_));
    if (hooked_) trash_objects->push_back(std::move(hooked_));
    if (grad_fn_) trash_objects->push_back(std::move(grad_fn_));
  }
  tensor_ = nullptr;
  hooked_ = nullptr;
  grad_fn_ = nullptr;
}

void SavedTensor::fail_version(const Tensor& tensor, const Ref<Node>& history,
                               const Node& node) const {
  const Node* source = is_output_ ? &node : history.get();
  std::string_view name = source ? std::string_view(source->name()) : std::string_view();
  // "MulBackward0" is the gradient of Mul.
  if (const size_t end = name.rfind("Backward"); end != std::string_view::npos && end > 0)
    name = name.substr(0, end);
  std::string text = format(
      "one of the variables needed for gradient computation has been modified by an inplace "
      "operation: [torch.{}Tensor {}]",
      scalar_type_name(tensor.dtype()), tensor.sizes());
  if (source) text += format(", which is output {} of {},", output_nr_, name);
  text += format(" is at version {}; expected version {} instead.", tensor.version(), version_);
  const std::string mutation = mutation_text(tensor);
  const std::string_view writer = writer_of(tensor, version_, node);
  if (anomaly_enabled) {
    text +=
        " Hint: the backtrace further above shows the operation that failed to compute its "
        "gradient. The variable in "
        "question was changed in there or anywhere later. Good luck!";
  } else {
    text += format(
        " Hint: enable anomaly detection to find the operation that failed to compute its "
        "gradient, with {}.",
        python_bridge.anomaly_call);
  }
  text +=
      format("\nFix: change a clone(), or write out of place. It was saved for {}", node.name());
  if (!mutation.empty())
    text += format("; it was {}", mutation);
  else if (!writer.empty())
    text += format("; it was last written by {}", writer);
  fail(ErrorKind::kRuntime, "{}", text);
}

}  // namespace taeda::autograd
