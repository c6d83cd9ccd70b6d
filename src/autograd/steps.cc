#include "autograd/steps.h"

#include <string_view>
#include <thread>

#include "autograd/math.h"

namespace taeda::autograd {
namespace {

// Passes that run, and whether a graph changes: each waits for, or gives way to, the other.
std::atomic<int64_t> passes{0};
std::atomic<bool> changing{false};

// What the end of `edge` knows of the tensor whose gradient it takes.
const ResultMetadata& metadata_of(const Edge& edge) {
  return edge.node->input_metadata(edge.input_nr);
}

int64_t product(IntSpan sizes) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return n;
}

DimVector as_matrix(IntSpan sizes) {
  return {product(IntSpan(sizes.data(), sizes.size() - 1)), sizes.back()};
}

// As if recorded with `original`.
void record_like(Node& step, const Node& original) {
  step.set_sequence(original.sequence());
  if (const NodeExtras* extras = original.extras(); extras && extras->forward_traceback) {
    step.make_extras().forward_traceback = extras->forward_traceback;
    step.make_extras().parent = extras->parent;
  }
  if (original.extras()) step.make_extras().stream = original.extras()->stream;
}

// The gradient of a view that transposes a matrix, or has the same elements in other sizes.
struct ViewStep final : Node {
  const char* title;
  DimVector sizes;  // of what is viewed; a transpose needs none

  explicit ViewStep(const char* name) : title(name) {}
  const char* name() const override { return title; }
  bool is_transpose() const { return title[0] == 'T'; }
  void visit_saved(SavedVisitor& show) override {
    const std::string_view name(title);
    if (name == "SqueezeBackward4" || name == "UnsqueezeBackward0") show.show("dim", int64_t{0});
    if (!is_transpose() && name != "UnsqueezeBackward0") show.show("self_sym_sizes", sizes);
  }
  TensorList apply(TensorList&& grads) override {
    TensorList out(1);
    if (!grads[0].defined()) return out;
    out[0] = is_transpose() ? math::transpose(grads[0]) : math::reshape(grads[0], sizes);
    return out;
  }
};

// The history `edge` of a tensor, as that of its view with other sizes.
Edge viewed(Edge edge, const char* name, IntSpan sizes, const Node& original) {
  if (!edge) return {};
  ResultMetadata metadata = metadata_of(edge);
  const Ref<ViewStep> step = make_ref<ViewStep>(name);
  step->sizes = std::exchange(metadata.sizes, DimVector(sizes));
  step->set_input_metadata(std::move(metadata));
  record_like(*step, original);
  step->edges_to_fill().push_back(std::move(edge));
  return {step, 0};
}

// addmm(bias, input, weight^T) or mm(input, weight^T), whose gradients linear's node computes.
struct MatrixStep final : Node {
  Ref<Node> linear;
  SavedTensor &input, &weight;
  DimVector sizes;     // of linear's result
  DimVector in_sizes;  // of the input as a matrix; empty where no edge knows
  bool has_bias;

  MatrixStep(Ref<Node> node, SavedTensor& input, SavedTensor& weight)
      : linear(std::move(node)), input(input), weight(weight) {}

  bool is_matrix() const { return sizes.size() == 2; }
  const char* name() const override { return has_bias ? "AddmmBackward0" : "MmBackward0"; }
  void release_saved() override {
    const ReleaseScope scope(*linear);
    linear->release_saved();
  }
  void visit_saved(SavedVisitor& show) override;
  TensorList apply(TensorList&& grads) override;

 private:
  static Tensor rows_of(const Tensor& t) { return math::reshape(t, as_matrix(t.sizes())); }
  DimVector input_strides() const;
};

DimVector MatrixStep::input_strides() const {
  const DimVector strides = input.strides();
  if (is_matrix() || strides.empty() || in_sizes.empty()) return strides;
  return {in_sizes[1], strides.back()};
}

void MatrixStep::visit_saved(SavedVisitor& show) {
  if (has_bias) {
    show.show("alpha", int64_t{1});
    show.show("beta", int64_t{1});
  }
  const SavedField left = is_matrix() ? SavedField(&input) : SavedField(SavedView{&input, rows_of});
  show.field(has_bias ? "mat1" : "self", left);
  show.show(has_bias ? "mat1_sym_sizes" : "self_sym_sizes", in_sizes);
  show.show(has_bias ? "mat1_sym_strides" : "self_sym_strides", input_strides());
  show.field("mat2", SavedView{&weight, math::transpose});
  const DimVector strides = weight.strides();
  show.show("mat2_sym_sizes",
            in_sizes.empty() ? DimVector() : DimVector{in_sizes[1], sizes.back()});
  show.show("mat2_sym_strides",
            strides.size() == 2 ? DimVector{strides[1], strides[0]} : DimVector());
}

TensorList MatrixStep::apply(TensorList&& grads) {
  TensorList out(next_edges().size());
  if (!grads[0].defined()) return out;
  if (!is_matrix()) grads[0] = math::reshape(grads[0], sizes);
  TensorList of = linear->apply(std::move(grads));
  size_t i = 0;
  if (has_bias) out[i++] = std::move(of[2]);
  if (of[0].defined()) out[i] = is_matrix() ? std::move(of[0]) : math::reshape(of[0], in_sizes);
  if (of[1].defined()) out[i + 1] = math::transpose(of[1]);
  return out;
}

}  // namespace

PassScope::PassScope() {
  passes.fetch_add(1);
  while (changing.load()) std::this_thread::yield();
}
PassScope::~PassScope() { passes.fetch_sub(1); }

void show_steps(Node& node) {
  NodeExtras& extras = node.make_extras();
  if (extras.steps) return;
  changing.store(true);
  if (passes.load() == 0) {
    if (Ref<Node> steps = node.make_steps()) extras.steps = std::move(steps);
  }
  changing.store(false);
}

bool has_linear_steps(const Node& node) {
  if (!node.input_metadata(0).known) return false;
  for (size_t i = 0; i < 2; i++)
    if (node.has_edge(i) && !metadata_of(node.next_edge(i)).known) return false;
  return true;
}

Ref<Node> linear_steps(const Node& node, Ref<Node> linear, SavedTensor& input,
                       SavedTensor& weight) {
  const std::string_view title = node.name();
  const EdgeList& edges = linear->next_edges();
  ResultMetadata metadata = node.input_metadata(0);
  Ref<MatrixStep> step = make_ref<MatrixStep>(linear, input, weight);
  step->has_bias = title == "AddmmBackward0" || title == "ViewBackward0";
  step->sizes = metadata.sizes;
  metadata.sizes = as_matrix(metadata.sizes);
  const Edge& known = edges[0] ? edges[0] : edges[1];
  if (known) step->in_sizes = {metadata.sizes[0], metadata_of(known).sizes.back()};
  EdgeList& next = step->edges_to_fill();
  if (step->has_bias) next.push_back(edges[2]);
  const char* const view = title == "SqueezeBackward4" ? "UnsqueezeBackward0" : "ViewBackward0";
  next.push_back(step->is_matrix() ? edges[0] : viewed(edges[0], view, step->in_sizes, node));
  if (edges[1]) {
    const DimVector& of_weight = metadata_of(edges[1]).sizes;
    next.push_back(viewed(edges[1], "TBackward0", {of_weight[1], of_weight[0]}, node));
  } else {
    next.emplace_back();
  }
  record_like(*step, node);
  step->set_input_metadata(metadata);
  if (step->is_matrix()) return step;
  Ref<ViewStep> last = make_ref<ViewStep>(node.name());
  last->sizes = metadata.sizes;
  last->edges_to_fill().push_back({std::move(step), 0});
  return last;
}

}  // namespace taeda::autograd
