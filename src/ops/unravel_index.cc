// torch.unravel_index: the index in each dimension of an index into all elements.
#include "op/_cast.h"
#include "op/floor_divide.h"
#include "op/remainder.h"
#include "op/unbind.h"
#include "op/unsqueeze.h"
#include "ops/expr.h"
#include "ops/host.h"

namespace taeda::impl {
namespace {

Tensor vector_of(const DimVector& values, Device device) {
  const auto write = [&](const Tensor& t) {
    std::copy(values.begin(), values.end(), t.data<int64_t>());
  };
  const int64_t count = static_cast<int64_t>(values.size());
  return written_on_host({count}, DType::kInt64, device, write);
}

}  // namespace

TensorList unravel_index(const Tensor& indices, IntSpan shape) {
  for (const int64_t size : shape) {
    TD_CHECK_VALUE(size >= 0, "'shape' cannot have negative values, but got {}", shape);
  }
  if (shape.empty()) return {};
  DimVector steps(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) steps[d] = expr::mul(steps[d + 1], shape[d + 1]);
  const Tensor whole = op::unsqueeze(op::_cast(indices, DType::kInt64, {}), -1);
  const Tensor at = op::floor_divide(whole, vector_of(steps, indices.device()));
  const DimVector sizes(shape.begin(), shape.end());
  return op::unbind(op::remainder(at, vector_of(sizes, indices.device())), -1);
}

}  // namespace taeda::impl
