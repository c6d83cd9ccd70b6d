// multilabel_margin_loss: each target against each class that is none.
#include "op/add.h"
#include "op/apply_reduction.h"
#include "op/bitwise_and.h"
#include "op/bitwise_not.h"
#include "op/clamp.h"
#include "op/cumsum.h"
#include "op/div.h"
#include "op/eq.h"
#include "op/gather.h"
#include "op/gt.h"
#include "op/lt.h"
#include "op/relu.h"
#include "op/reshape.h"
#include "op/scatter_add.h"
#include "op/squeeze.h"
#include "op/sub.h"
#include "op/sum.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "op/where.h"
#include "op/zeros_like.h"
#include "ops/device_bounds.h"
#include "ops/loss_rules.h"

namespace taeda::impl {

namespace {

void check_multilabel(const Tensor& input, const Tensor& target) {
  TD_CHECK_IMPLEMENTED(
      input.device().type == DeviceType::kCUDA || !is_reduced_floating(input.dtype()),
      "\"multilabel_margin_loss_forward_out_frame\" not implemented for '{}'",
      scalar_type_name(input.dtype()));
  TD_CHECK(input.dim() <= 1 ? input.numel() > 0 : input.dim() == 2 && input.size(1) > 0,
           "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}",
           input.sizes());
  const bool fits = input.dim() < 2 ? target.dim() < 2 && input.numel() == target.numel()
                                    : input.sizes() == target.sizes();
  TD_CHECK(fits, "inconsistent target size: {} for input of size: {}", target.sizes(),
           input.sizes());
  TD_CHECK(target.dtype() == DType::kInt64,
           "multilabel_margin_loss: expected target of scalar type Long but found {}",
           scalar_type_name(target.dtype()));
}

}  // namespace

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, OptBool size_average,
                              OptBool reduce, std::string_view reduction) {
  const std::string_view how = rules::reduction(reduction, size_average, reduce);
  check_multilabel(input, target);
  const bool single = input.dim() < 2;
  const Tensor x = single ? op::reshape(input, DimVector{1, -1}) : input,
               y = single ? op::reshape(target, DimVector{1, -1}) : target;
  const Scalar one(int64_t{1});
  const Tensor ends = op::to_dtype(op::lt(y, Tensor(0)), DType::kInt64, false, std::nullopt);
  const Tensor valid = op::eq(op::cumsum(ends, 1, {}), Tensor(0));  // up to the first -1
  const Tensor index = op::clamp(y, Scalar(int64_t{0}), std::nullopt);
  on_device::checks_indices(index, x.size(1),
                            {"multilabel_margin_loss(): argument #2 'target' is out of range: {} "
                             "is not one of {} classes",
                             {},
                             ErrorKind::kRuntime});
  const Tensor counts = op::scatter_add(op::zeros_like(x, {}, {}), 1, index,
                                        op::to_dtype(valid, x.dtype(), false, std::nullopt));
  const Tensor others = op::unsqueeze(op::bitwise_not(op::gt(counts, Tensor(0))), 1);
  const Tensor of_targets = op::unsqueeze(op::gather(x, 1, index, false), 2);
  // n, targets, classes
  const Tensor gap = op::add(op::sub(Tensor(1), of_targets, one), op::unsqueeze(x, 1), one);
  const Tensor used = op::bitwise_and(op::unsqueeze(valid, 2), others);
  const Tensor kept = op::where(used, op::relu(gap), op::zeros_like(gap, {}, {}));
  const Tensor loss =
      op::div(op::sum(kept, DimVector{1, 2}, false, {}), Tensor(static_cast<double>(x.size(1))));
  return op::apply_reduction(single ? op::squeeze_dim(loss, DimVector{0}) : loss, how);
}

}  // namespace taeda::impl
