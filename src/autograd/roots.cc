#include "autograd/roots.h"

#include "autograd/math.h"
#include "taeda/error.h"

namespace taeda::autograd {
namespace {

Tensor implicit_gradient(const Root& root) {
  const ResultMetadata& output = root.output;
  int64_t count = 1;
  for (int64_t n : output.sizes) count *= n;
  TD_CHECK(count == 1,
           "grad can be implicitly created only for scalar outputs: backward of an output of shape "
           "{} needs its gradient, or reduce it by sum() or mean() first",
           IntSpan(output.sizes));
  TD_CHECK(is_floating(output.dtype),
           "grad can be implicitly created only for real scalar outputs but got torch.{}",
           output.dtype);
  const Tensor like = root.tensor.defined() ? root.tensor : output.zeros();
  return math::ones_like(like);
}

Tensor checked_gradient(size_t i, const ResultMetadata& output, const Tensor& given) {
  TD_CHECK(given.sizes() == IntSpan(output.sizes),
           "Mismatch in shape: grad_output[{}] has a shape of torch.Size({}) and output[{}] has a "
           "shape of torch.Size({}).",
           i, given.sizes(), i, IntSpan(output.sizes));
  TD_CHECK(given.is_complex() == is_complex(output.dtype),
           "For complex Tensors, both grad_output and output are required to have the same dtype. "
           "Mismatch in dtype: grad_output[{}] has a dtype of torch.{} and output[{}] has a dtype "
           "of torch.{}.",
           i, given.dtype(), i, output.dtype);
  const bool same = given.dtype() == output.dtype || !is_inexact(output.dtype);
  return same ? given : math::cast(given, output.dtype);
}

}  // namespace

TensorList start_gradients(const std::vector<Root>& roots, const TensorList* given) {
  TD_CHECK(!given || given->size() == roots.size(), "got {} tensors and {} gradients", roots.size(),
           given->size());
  TensorList grads(roots.size());
  for (size_t i = 0; i < roots.size(); i++) {
    if (given && (*given)[i].defined())
      grads[i] = checked_gradient(i, roots[i].output, (*given)[i]);
    else if (roots[i].edge)
      grads[i] = implicit_gradient(roots[i]);
  }
  for (size_t i = 0; i < roots.size(); i++)
    TD_CHECK(roots[i].edge,
             "element {} of tensors does not require grad and does not have a grad_fn\nFix: set "
             "requires_grad on what is differentiated by, and look for no_grad, detach, item and "
             "integers on the way from there",
             i);
  return grads;
}

Root root_of(const Tensor& tensor, Edge edge) {
  const KeySet keys = (tensor.impl()->keys | thread_modes.included) - thread_modes.excluded;
  return {std::move(edge), ResultMetadata(tensor), keys.has(Key::kPython) ? tensor : Tensor()};
}

std::vector<Edge> edges_of(const std::vector<Root>& roots) {
  std::vector<Edge> edges;
  edges.reserve(roots.size());
  for (const Root& root : roots) edges.push_back(root.edge);
  return edges;
}

}  // namespace taeda::autograd
