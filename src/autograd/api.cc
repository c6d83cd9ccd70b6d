// backward(), grad(), and the methods of Tensor that concern autograd.
#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "autograd/forward.h"
#include "autograd/math.h"
#include "autograd/record.h"
#include "autograd/roots.h"
#include "autograd/view.h"
#include "core/device_memory.h"
#include "taeda/autograd.h"

namespace taeda {
namespace {

std::vector<autograd::Root> roots_of(const TensorList& outputs) {
  std::vector<autograd::Root> roots;
  for (size_t i = 0; i < outputs.size(); i++) {
    TD_CHECK(outputs[i].defined(), "element {} of tensors is undefined", i);
    roots.push_back(autograd::root_of(outputs[i], autograd::gradient_edge(outputs[i])));
  }
  return roots;
}

}  // namespace

void backward(const TensorList& tensors, const TensorList& grad_tensors, bool retain_graph,
              bool create_graph, const TensorList& inputs) {
  const std::vector<autograd::Root> roots = roots_of(tensors);
  TensorList grads =
      autograd::start_gradients(roots, grad_tensors.empty() ? nullptr : &grad_tensors);
  std::vector<autograd::Edge> edges;
  for (Tensor input : inputs) {
    TD_CHECK(input.requires_grad(), "One of the differentiated Tensors does not require grad");
    input.retain_grad();
    edges.push_back(autograd::gradient_edge(input));
  }
  autograd::RunOptions options;
  options.keep_graph = retain_graph || create_graph;
  options.create_graph = create_graph;
  autograd::Engine::run(edges_of(roots), std::move(grads), edges, options);
}

TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& grad_outputs,
                GradOptions options) {
  TD_CHECK(!inputs.empty(), "`inputs` argument to `grad()` cannot be empty.");
  TD_CHECK_VALUE(!options.materialize_grads || options.allow_unused,
                 "Expected allow_unused to be True or not passed when materialize_grads=True, but "
                 "got: allow_unused=False.");
  const std::vector<autograd::Root> roots = roots_of(outputs);
  TensorList grads =
      autograd::start_gradients(roots, grad_outputs.empty() ? nullptr : &grad_outputs);
  std::vector<autograd::Edge> edges;
  for (const Tensor& input : inputs) {
    TD_CHECK(input.requires_grad(), "One of the differentiated Tensors does not require grad");
    edges.push_back(autograd::gradient_edge(input));
  }
  autograd::RunOptions run;
  run.keep_graph = options.retain_graph || options.create_graph;
  run.create_graph = options.create_graph;
  run.accumulate = false;
  TensorList results = autograd::Engine::run(edges_of(roots), std::move(grads), edges, run);
  for (size_t i = 0; i < results.size(); i++) {
    if (results[i].defined()) continue;
    TD_CHECK(options.allow_unused,
             "The differentiated Tensor at index {} appears to not have been used in the graph. "
             "Set allow_unused=True if "
             "this is the desired behavior.",
             i);
    if (options.materialize_grads)
      results[i] = autograd::math::zeros(inputs[i].sizes(), inputs[i].dtype(), inputs[i].device());
  }
  return results;
}

bool Tensor::requires_grad() const { return autograd::requires_grad(impl()); }

bool Tensor::is_leaf() const { return !requires_grad() || !autograd::grad_fn(*this); }

Tensor& Tensor::requires_grad_(bool value) {
  TD_CHECK(defined(), "requires_grad_: the tensor is undefined");
  if (!value) {
    TD_CHECK(is_leaf(),
             "you can only change requires_grad flags of leaf variables. If you want to use a "
             "computed variable in a "
             "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    if (auto* meta = autograd::meta_of(impl())) meta->requires_grad = false;
    autograd::refresh_keys(impl());
    return *this;
  }
  if (impl()->autograd && autograd::grad_fn(*this)) return *this;
  TD_CHECK(!impl()->inference || thread_modes.inference,
           "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  TD_CHECK(
      is_inexact(dtype()),
      "Only Tensors of floating point and complex dtype can require gradients, not those of {}\n"
      "Fix: make it floating point: dtype=torch.float32, 3.0 in place of 3, or x.float()",
      dtype());
  autograd::make_meta(impl()).requires_grad = true;
  autograd::refresh_keys(impl());
  return *this;
}

Tensor Tensor::grad() const {
  const autograd::AutogradMeta* meta = autograd::meta_of(impl());
  if (!meta) return {};
  if (!meta->retained) return meta->grad;
  std::lock_guard<std::mutex> lock(meta->retained->mutex);
  return meta->retained->grad;
}

void Tensor::set_grad(const Tensor& grad) {
  if (grad.defined()) {
    TD_CHECK(!is_same(grad), "can't assign Variable as its own grad");
    TD_CHECK(
        grad.dtype() == dtype(),
        "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The "
        "gradient must match the tensor's grad_dtype (defaults to the tensor's dtype).",
        grad.dtype(), scalar_type_name(dtype()));
    TD_CHECK(grad.device() == device(),
             "attempting to assign a gradient located on device '{}' to a tensor located on device "
             "'{}'. Please ensure that the gradient and the tensor are on the same device",
             grad.device(), device());
    TD_CHECK(grad.sizes() == sizes(),
             "attempting to assign a gradient of size '{}' to a tensor of size '{}'. Please ensure "
             "that the gradient and the tensor are the same size",
             grad.sizes(), sizes());
  }
  autograd::AutogradMeta* meta = autograd::meta_of(impl());
  if (!meta && !grad.defined()) return;
  meta = &autograd::make_meta(impl());
  if (!meta->retained) {
    meta->grad = grad;
    return;
  }
  Tensor old = grad;
  std::lock_guard<std::mutex> lock(meta->retained->mutex);
  std::swap(meta->retained->grad, old);
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  taeda::backward({*this}, gradient.defined() ? TensorList{gradient} : TensorList(), retain_graph,
                  create_graph);
}

Tensor Tensor::variable_data() const {
  Tensor data = autograd::math::alias(*this);
  data.impl()->own_version = make_ref<VersionCounter>();
  return data;
}

void Tensor::set_data(const Tensor& value) {
  TensorImpl* to = impl();
  const TensorImpl* from = value.impl();
  TD_CHECK(defined() && value.defined(), "set_data: the tensor is undefined");
  TD_CHECK(has_memory(to->device) == has_memory(from->device) && is_sparse() == value.is_sparse(),
           "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
           "incompatible tensor type.");
  TD_CHECK(!requires_grad() || is_inexact(value.dtype()),
           "data set to a tensor that requires gradients must be floating point or complex dtype");
  if (to == from) return;  // set_layout would read the sizes that it overwrites
  const bool changed =
      to->dtype != from->dtype || to->sizes != from->sizes || to->device != from->device;
  const uint32_t version = to->inference ? 0 : to->version();
  Ref<VersionCounter> counter = make_ref<VersionCounter>();
  counter->value = version;
  const Ref<Storage> old = std::exchange(to->storage, from->storage);
  to->own_version = std::move(counter);
  to->dtype = from->dtype;
  to->device = from->device;
  constexpr KeySet kKinds = kDeviceKeys | kMathBits | Key::kSparse;
  to->keys = (to->keys - kKinds) | (from->keys & kKinds);
  if (value.is_sparse()) to->wrapped = from->wrapped;
  to->set_layout(from->sizes, from->strides, from->offset);
  if (changed) autograd::forget_accumulator(*this);
}

}  // namespace taeda
