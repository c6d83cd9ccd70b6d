#include "autograd/view.h"

#include "autograd/math.h"
#include "autograd/record.h"
#include "autograd/view_replay.h"
#include "core/layout.h"
#include "ops/batching/level.h"

namespace taeda::autograd {
namespace {

// A gradient buffer with the base's layout, in which a view's layout names the same elements as in
// the base. Bases whose elements overlap or leave gaps get room for their whole range of memory.
class GradientBuffer {
 public:
  GradientBuffer(const ViewGeometry& base, Device device) : base_(base) {
    int64_t last = 0;
    for (size_t i = 0; i < base.sizes.size(); i++) last += (base.sizes[i] - 1) * base.strides[i];
    const bool empty = checked_numel(base.sizes) == 0;
    const int64_t length = empty ? 0 : (last + 2) / 2 * 2;  // even: pairs may be complex numbers
    memory_ = math::zeros(IntSpan({length}), base.dtype, device);
    batching::prepare_to_write(memory_);
    whole_ = math::as_strided(memory_, base.sizes, base.strides, 0);
  }
  const Tensor& whole() const { return whole_; }
  // The part that a view covers, as the view reads it. Elements outside of the base's own range (a
  // view by as_strided) have no place here.
  Tensor part(const ViewGeometry& view) const {
    return math::as_read(memory_of(view), view.bits, base_.bits);
  }

 private:
  Tensor memory_of(const ViewGeometry& view) const {
    if (view.dtype == base_.dtype) {
      return math::as_strided(memory_, view.sizes, view.strides, view.offset - base_.offset);
    }
    // x.real, view_as_real: strides and offset count real numbers.
    if (is_complex(base_.dtype)) {
      const Tensor reals = math::view_as_real(memory_);
      return math::as_strided(reals, view.sizes, view.strides, view.offset - 2 * base_.offset);
    }
    // view_as_complex: they count pairs.
    const Tensor pairs = math::pairs_as_complex(memory_);
    return math::as_strided(pairs, view.sizes, view.strides, view.offset - base_.offset / 2);
  }

  const ViewGeometry& base_;
  Tensor memory_, whole_;
};

void check_geometry(const ViewGeometry& base, const ViewGeometry& view) {
  TD_CHECK_IMPLEMENTED(
      base.dtype == view.dtype || (is_complex(base.dtype) && to_real(base.dtype) == view.dtype) ||
          (is_complex(view.dtype) && to_real(view.dtype) == base.dtype && base.offset % 2 == 0),
      "in-place change of a {} view of a {} tensor whose gradient is tracked", view.dtype,
      base.dtype);
}

// A view of a base, made anew after the base's memory was written.
struct AsStridedNode final : Node {
  ViewGeometry base, view;
  Device device;
  Ref<const ViewReplay> replay;
  const char* name() const override { return "AsStridedBackward0"; }
  TensorList apply(TensorList&& grads) override {
    TensorList out(1);
    if (!grads[0].defined() || !should_compute(0)) return out;
    if (replay) {
      out[0] = zeros_in_layout(grads[0], base.sizes, base.strides);
      math::copy_(replay->run(out[0]), grads[0]);
    } else if (base.dtype == view.dtype && base.bits == view.bits) {
      out[0] = math::as_strided_backward(grads[0], base.sizes, base.strides, base.offset,
                                         view.sizes, view.strides, view.offset);
    } else {
      GradientBuffer buffer(base, device);
      math::copy_(buffer.part(view), grads[0]);
      out[0] = buffer.whole();
    }
    return out;
  }
};

Ref<Node> make_view_node(const ViewGeometry& base, const ViewGeometry& view, Device device,
                         Ref<const ViewReplay> replay, Edge edge) {
  if (!replay) check_geometry(base, view);
  Ref<AsStridedNode> node = make_ref<AsStridedNode>();
  node->base = base;
  node->view = view;
  node->device = device;
  node->replay = std::move(replay);
  EdgeList edges;
  edges.push_back(std::move(edge));
  node->set_next_edges(std::move(edges));
  return node;
}

// The history of a base after an operator wrote into a view of it.
struct CopySlices final : Node {
  ViewGeometry base, view;
  Device device;
  Ref<const ViewReplay> replay;
  Ref<Node> inner;
  uint32_t inner_output = 0;
  bool inner_reads_view = false;  // the inner node's first edge is the view's old value

  const char* name() const override { return "CopySlices"; }
  ~CopySlices() override {
    if (inner) inner->set_owner(nullptr);
  }
  bool is_python() const override { return inner && inner->is_python(); }
  void release_saved() override {
    if (inner) inner->release_saved();
  }
  TensorList apply(TensorList&& grads) override {
    TensorList out(next_edges().size());
    if (!grads[0].defined()) return out;
    const auto [whole, part] = copy_of(grads[0]);
    TensorList inner_grads(inner->num_inputs());
    inner_grads[inner_output] = math::clone(part);
    TensorList inner_out = inner->apply(std::move(inner_grads));
    const size_t skip = inner_reads_view ? 1 : 0;
    for (size_t i = skip; i < inner_out.size() && i - skip + 1 < out.size(); i++)
      out[i - skip + 1] = std::move(inner_out[i]);
    if (should_compute(0)) {
      const bool flows = inner_reads_view && !inner_out.empty() && inner_out[0].defined();
      if (!flows) {
        zero_(part);
      } else {
        const bool same = inner_out[0].sizes() == IntSpan(view.sizes);
        math::copy_(part, same ? inner_out[0] : math::sum_to_size(inner_out[0], view.sizes));
      }
      out[0] = whole;
    }
    return out;
  }

 private:
  // A copy of the base's gradient, and the view's part of it.
  std::pair<Tensor, Tensor> copy_of(const Tensor& grad) const {
    if (replay) {
      Tensor whole = copied_to_layout(grad, base.sizes, base.strides);
      Tensor part = replay->run(whole);
      return {std::move(whole), std::move(part)};
    }
    const GradientBuffer buffer(base, device);
    math::copy_(buffer.whole(), grad);
    return {buffer.whole(), buffer.part(view)};
  }
};

}  // namespace

void set_gradient_edge(const Tensor& t, Ref<Node> node, uint32_t output_nr) {
  AutogradMeta& meta = make_meta(t.impl());
  meta.grad_fn = std::move(node);
  meta.output_nr = output_nr;
  refresh_keys(t.impl());
}

void attach_view_history(const Tensor& alias, Node& base_node) {
  const auto& copy = static_cast<const CopySlices&>(base_node);
  Ref<Node> node = make_view_node(copy.base, ViewGeometry(alias), alias.device(), copy.replay,
                                  Edge{Ref<Node>(&base_node), 0});
  node->set_input_metadata(0, alias);
  set_gradient_edge(alias, std::move(node), 0);
}

Ref<Node> view_grad_fn(const Tensor& view) {
  TensorImpl* impl = view.impl();
  AutogradMeta* meta = meta_of(impl);
  const Tensor base(impl->view_base);
  if (!(meta && meta->grad_fn) && !requires_grad(base)) return {};
  if (impl->version() == impl->view_version) return meta ? meta->grad_fn : Ref<Node>();
  if (!requires_grad(base)) return meta->grad_fn;
  check_view_writable(view, /*indirect=*/true);
  Ref<Node> node = make_view_node(ViewGeometry(base), ViewGeometry(view), view.device(),
                                  replay_of(view), gradient_edge(base));
  node->set_input_metadata(0, view);
  move_history(view, node, 0);
  impl->view_version = impl->version();
  return meta_of(impl)->grad_fn;
}

void rebase_view(const Tensor& view, const Ref<Node>& node, uint32_t output_nr) {
  TensorImpl* impl = view.impl();
  const Tensor base(impl->view_base);
  Ref<CopySlices> copy = make_ref<CopySlices>();
  copy->base = ViewGeometry(base);
  copy->view = ViewGeometry(view);
  copy->device = view.device();
  copy->replay = replay_of(view);
  if (!copy->replay) check_geometry(copy->base, copy->view);
  // The operator's first argument is the view: its gradient goes on to the base's old value.
  const AutogradMeta* meta = meta_of(impl);
  const Edge first = node->next_edges().size() > 0 ? node->next_edge(0) : Edge();
  copy->inner_reads_view =
      first && meta && first.node == meta->grad_fn && first.input_nr == meta->output_nr;
  Edge base_edge;
  if (requires_grad(base)) base_edge = gradient_edge(base);
  EdgeList edges, inner_edges;
  edges.push_back(base_edge);
  for (size_t i = 0; i < node->next_edges().size(); i++) {
    const bool is_view = i == 0 && copy->inner_reads_view;
    inner_edges.push_back(is_view ? base_edge : node->next_edge(i));
    if (!is_view) edges.push_back(node->next_edge(i));
  }
  node->set_next_edges(std::move(inner_edges));
  node->set_owner(copy.get());
  copy->set_next_edges(std::move(edges));
  copy->inner = node;
  copy->inner_output = output_nr;
  copy->set_input_metadata(0, base);
  move_history(base, copy, 0);
  // The view's own history is made anew when it is next asked for.
  impl->view_version = impl->version() - 1;
}

void check_view_writable(const Tensor& view, bool indirect) {
  const uint32_t flags = view.impl()->view_flags;
  if (flags == 0) return;
  const char* modified = indirect ? "its base or another view of its base has been modified inplace"
                                  : "is being modified inplace";
  const AutogradMeta* meta = meta_of(view);
  const bool recorded = meta && meta->grad_fn;
  std::string_view name =
      recorded ? std::string_view(meta->grad_fn->name()) : std::string_view("View");
  if (const size_t end = name.rfind("Backward"); end != std::string_view::npos && end > 0)
    name = name.substr(0, end);
  if (flags & (kMadeInInference | kMadeWithoutGrad)) {
    // A recorded view has the flag of the view that it was made of.
    const std::string what =
        recorded ? format("Output {} of {} is a view of a view which", meta->output_nr, name)
                 : std::string("A view");
    const bool inference = flags & kMadeInInference;
    const char* mode = inference ? "inference_mode" : "no_grad";
    fail(ErrorKind::kRuntime,
         "{} was created in {} mode and {} {}. Given that this use case is ambiguous and "
         "error-prone, it is forbidden. You can clarify your code by moving both the view and the "
         "inplace either both inside the {} block (if you don't want the inplace to be tracked) or "
         "both outside (if you want the inplace to be tracked).",
         what, inference ? "inference" : "no_grad", modified,
         inference ? "in normal mode" : "with grad mode enabled", mode);
  }
  const std::string output =
      format("Output {} of {} is a view and {}. ", meta ? meta->output_nr : 0u, name, modified);
  if (flags & kOneOfSeveral) {
    fail(ErrorKind::kRuntime,
         "{}This view is the output of a function that returns multiple views. Such functions do "
         "not allow the output views "
         "to be modified inplace. You should replace the inplace operation by an out-of-place one.",
         output);
  }
  fail(ErrorKind::kRuntime,
       "{}This view was created inside a custom Function (or because an input was returned as-is) "
       "and the autograd logic to "
       "handle view+inplace would override the custom backward associated with the custom "
       "Function, leading to incorrect "
       "gradients. This behavior is forbidden. You can fix this by cloning the output of the "
       "custom Function.",
       output);
}

}  // namespace taeda::autograd
