// torch.unravel_index: the index in each dimension of an index into all elements.
#include "op/_cast.h"
#include "op/floor_divide.h"
#include "op/remainder.h"
#include "ops/expr.h"

namespace taeda::impl {

TensorList unravel_index(const Tensor& indices, IntSpan shape) {
  for (const int64_t size : shape) {
    TD_CHECK_VALUE(size >= 0, "'shape' cannot have negative values, but got {}", shape);
  }
  const Tensor whole = op::_cast(indices, DType::kInt64, {});
  TensorList found(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0; step = expr::mul(step, shape[d])) {
    found[d] = op::remainder(op::floor_divide(whole, Tensor(step)), Tensor(shape[d]));
  }
  return found;
}

}  // namespace taeda::impl
