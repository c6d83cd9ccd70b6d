#include "autograd/record.h"

#include <algorithm>
#include <atomic>

#include "autograd/accumulate.h"
#include "autograd/anomaly.h"
#include "autograd/forward.h"
#include "autograd/layer.h"
#include "autograd/math.h"
#include "autograd/view.h"
#include "taeda/autograd.h"

namespace taeda::autograd {
namespace {

// An operator that has no gradient: backward through it says so.
struct NotDifferentiableNode final : Node {
  std::string op;
  const char* name() const override { return "NotImplemented"; }
  TensorList apply(TensorList&&) override {
    fail(ErrorKind::kRuntime, "derivative for {} is not implemented", op);
  }
};

struct ZeroGradientNode final : Node {
  const char* title = "";
  const char* name() const override { return title; }
  TensorList apply(TensorList&&) override {
    TensorList out(next_edges().size());
    for (size_t i = 0; i < out.size(); i++) {
      const Edge& edge = next_edge(i);
      // Of a write into a view the first edge leads to the base: its owner knows the zeros.
      if (!should_compute(i) || (i == 0 && owner())) continue;
      const ResultMetadata& metadata = edge.node->input_metadata(edge.input_nr);
      if (metadata.known) out[i] = metadata.zeros();
    }
    return out;
  }
};

// Hands the gradient of a copy on to the original.
struct PassNode final : Node {
  const char* name() const override { return "AliasBackward0"; }
  TensorList apply(TensorList&& grads) override { return std::move(grads); }
};

}  // namespace

void pass_through(const Tensor& copy, const Tensor& original) {
  Ref<PassNode> node = make_ref<PassNode>();
  set_edges(*node, original);
  set_history(copy, node);
}

bool requires_grad_slow(const TensorImpl* impl) {
  if (const AutogradMeta* meta = meta_of(impl); meta && (meta->requires_grad || meta->grad_fn))
    return true;
  return impl->view_base && requires_grad(impl->view_base.get());
}

Ref<Node> grad_fn(const Tensor& t) {
  if (!t.defined()) return {};
  if (t.impl()->view_base) return view_grad_fn(t);
  const AutogradMeta* meta = meta_of(t);
  return meta ? meta->grad_fn : Ref<Node>();
}

Edge gradient_edge(const Tensor& t) {
  if (!requires_grad(t)) return {};
  if (Ref<Node> node = grad_fn(t)) return {std::move(node), meta_of(t)->output_nr};
  return {accumulator_of(t), 0};
}

void detail::set_result(const Tensor& result, Node* node, uint32_t output_nr) {
  node->set_input_metadata(output_nr, result);
  if (!result.defined() || !is_inexact(result.dtype())) return;
  TensorImpl* impl = result.impl();
  AutogradMeta& meta = make_meta(impl);
  meta.grad_fn = Ref<Node>(node);
  meta.output_nr = output_nr;
  impl->keys = impl->keys | Key::kAutograd;
  if (impl->view_base) impl->view_version = impl->version();
}

void move_history(const Tensor& t, const Ref<Node>& node, uint32_t output_nr) {
  AutogradMeta& meta = make_meta(t.impl());
  const Ref<Node> old = std::move(meta.grad_fn);
  const uint32_t old_nr = meta.output_nr;
  meta.grad_fn = node;
  meta.output_nr = output_nr;
  t.impl()->keys = t.impl()->keys | Key::kAutograd;
  // Hooks registered so far keep seeing the gradient of the old value; retain_grad follows the
  // tensor.
  if (!meta.retained || !old || !old->extras()) return;
  auto& retained = old->extras()->retain_grad;
  for (size_t i = 0; i < retained.size(); i++) {
    if (retained[i].first != old_nr) continue;
    node->make_extras().retain_grad.emplace_back(output_nr, std::move(retained[i].second));
    retained.erase(retained.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
}

namespace {

// The last write into each storage, so that an error can name the operator without anomaly mode.
// Storages share slots, and threads that write at the same time mix theirs up: whoever reads one
// compares the storage, which may have another's address, the version and the node's number.
struct Write {
  std::atomic<const Storage*> storage{nullptr};
  std::atomic<uint32_t> version{0};   // before it
  std::atomic<uint64_t> sequence{0};  // nodes with a smaller number are older
  std::atomic<const char*> op{nullptr};
};
constexpr size_t kNotedWrites = 256;
constinit Write noted_writes[kNotedWrites];

Write& slot_of(const Storage* storage) {
  return noted_writes[(reinterpret_cast<uintptr_t>(storage) * 0x9E3779B97F4A7C15u) >> 56];
}

// `op` is a literal of the generated code.
void note_write(std::string_view op, const TensorImpl* impl) {
  const Storage* storage = impl->storage.get();
  if (!storage) return;  // sparse
  Write& w = slot_of(storage);
  w.storage.store(storage, std::memory_order_relaxed);
  w.version.store(impl->version(), std::memory_order_relaxed);
  w.sequence.store(next_sequence(), std::memory_order_relaxed);
  w.op.store(op.data(), std::memory_order_relaxed);
}

}  // namespace

std::string_view writer_of(const Tensor& tensor, uint32_t saved_version, const Node& node) {
  const Storage* storage = tensor.storage().get();
  const Write& w = slot_of(storage);
  const uint32_t version = w.version.load(std::memory_order_relaxed);
  const bool same = w.storage.load(std::memory_order_relaxed) == storage;
  if (w.sequence.load(std::memory_order_relaxed) <= node.sequence()) return {};
  if (!same || version < saved_version || version >= tensor.version()) return {};
  const char* op = w.op.load(std::memory_order_relaxed);
  return op ? std::string_view(op) : std::string_view();
}

void rename_write(const Tensor& written, const char* what) {
  const Storage* storage = written.impl()->storage.get();
  Write& w = slot_of(storage);
  if (storage && w.storage.load(std::memory_order_relaxed) == storage)
    w.op.store(what, std::memory_order_relaxed);
}

void check_inplace(std::string_view op, const Tensor& self, bool needs) {
  TensorImpl* impl = self.impl();
  note_write(op, impl);
  TD_CHECK(!impl->inference || thread_modes.inference,
           "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
           "clone to get a normal "
           "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for "
           "more details.");
  if (needs && thread_modes.grad_enabled) {
    if (impl->view_base) {
      check_view_writable(self, /*indirect=*/false);
      // A leaf may itself be a view of a base without history: x.view(2, 2).requires_grad_().
      TD_CHECK(
          !requires_grad(self) || grad_fn(Tensor(impl->view_base)),
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    }
    TD_CHECK(!requires_grad(self) || grad_fn(self),
             "a leaf Variable that requires grad is being used in an in-place operation. {}() of a "
             "parameter belongs under torch.no_grad().",
             op);
  }
  if (anomaly_enabled.load(std::memory_order_relaxed)) [[unlikely]]
    note_mutation(op, self);
}

void rebase_history(const Tensor& self, const Ref<Node>& node, uint32_t output_nr) {
  node->set_input_metadata(output_nr, self);
  if (!is_inexact(self.dtype())) return;
  if (self.impl()->view_base)
    rebase_view(self, node, output_nr);
  else
    move_history(self, node, output_nr);
}

void track_view(const Tensor& result, const Tensor& base, uint32_t flags) {
  TensorImpl* view = result.impl();
  TensorImpl* from = base.impl();
  if (view == from) return;
  view->own_version = from->own_version;
  if (from->inference) {
    view->inference = true;
    view->keys = view->keys | Key::kAutograd;
    return;
  }
  view->inference = false;
  view->view_base = from->view_base ? from->view_base : base.ref();
  if (thread_modes.inference)
    flags |= kMadeInInference;
  else if (!thread_modes.grad_enabled)
    flags |= kMadeWithoutGrad;
  view->view_flags = flags ? flags : from->view_flags;
  view->view_version = view->version();
  view->keys = view->keys | Key::kAutograd;
  if (any_dual_level()) [[unlikely]]
    follow_base(result, base);
}

TensorList layouts(TensorSpan tensors) {
  const ExcludeKeys untracked(KeySet(Key::kAutograd) | Key::kForward);
  TensorList out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors)
    out.push_back(math::zeros(t.sizes(), t.dtype(), Device(DeviceType::kMeta)));
  return out;
}

TensorList all_gradients(const Node& node, TensorList&& grads) {
  const auto defined = [](const Tensor& g) { return g.defined(); };
  if (std::none_of(grads.begin(), grads.end(), defined)) return {};
  for (uint32_t i = 0; i < grads.size(); i++)
    if (!grads[i].defined()) grads[i] = node.input_metadata(i).zeros();
  return std::move(grads);
}

void store_list(TensorList&& gradients, TensorList& out, size_t index, size_t count) {
  for (size_t i = 0; i < gradients.size() && i < count; i++)
    out[index + i] = std::move(gradients[i]);
}

TensorList replay(const TensorList& inputs, const TensorList& gys,
                  const std::function<TensorList(const TensorList&)>& function) {
  const bool create_graph = thread_modes.grad_enabled;
  const EnableGrad recording;
  TensorList fresh, wanted;
  std::vector<size_t> indices;
  for (size_t i = 0; i < inputs.size(); i++) {
    const Tensor& x = inputs[i];
    // What is recorded may lead to no leaf of ours, which nobody knows.
    if (!x.defined() || !is_inexact(x.dtype()) || (create_graph && !requires_grad(x))) {
      fresh.push_back(x);
      continue;
    }
    Tensor copy = math::alias(x);
    share_tangent(copy, x);
    if (create_graph)
      pass_through(copy, x);
    else
      copy.requires_grad_();
    fresh.push_back(copy);
    wanted.push_back(copy);
    indices.push_back(i);
  }
  const TensorList results = function(fresh);
  TensorList out(inputs.size()), outputs, grads;
  for (size_t i = 0; i < results.size() && i < gys.size(); i++) {
    if (!gys[i].defined() || !requires_grad(results[i])) continue;
    outputs.push_back(results[i]);
    grads.push_back(gys[i]);
  }
  if (outputs.empty() || wanted.empty()) return out;
  GradOptions options;
  options.create_graph = options.retain_graph = create_graph;
  options.allow_unused = true;
  TensorList found = grad(outputs, wanted, grads, options);
  for (size_t i = 0; i < found.size(); i++) out[indices[i]] = std::move(found[i]);
  return out;
}

Ref<Node> not_differentiable_node(std::string_view op, EdgeList edges) {
  Ref<NotDifferentiableNode> node = make_ref<NotDifferentiableNode>();
  node->op = op;
  node->set_next_edges(std::move(edges));
  return node;
}

Ref<Node> zero_gradient_node(const char* name, EdgeList edges) {
  Ref<ZeroGradientNode> node = make_ref<ZeroGradientNode>();
  node->title = name;
  node->set_next_edges(std::move(edges));
  return node;
}

void mark_not_differentiable(const Ref<Node>& node, const Tensor& result) {
  if (result.defined() && is_inexact(result.dtype())) set_history(result, node);
}

Tensor not_differentiable_inplace(const Ref<Node>& node, const Tensor& self) {
  if (is_inexact(self.dtype())) rebase_history(self, node);
  return self;
}

}  // namespace taeda::autograd
