// torch.linalg.tensorsolve: a linear system whose unknowns and equations have several dimensions.
#include <numeric>

#include "op/linalg_solve.h"
#include "op/movedim.h"
#include "op/reshape.h"
#include "ops/linalg_rules.h"

namespace taeda::impl {

Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptInts dims) {
  Tensor A = self;
  if (dims) {
    DimVector last(dims->size());
    std::iota(last.begin(), last.end(), self.dim() - static_cast<int64_t>(dims->size()));
    A = op::movedim(self, *dims, last);
  }
  const size_t equations = static_cast<size_t>(std::min(other.dim(), A.dim()));
  const IntSpan sizes = A.sizes(), unknowns = sizes.slice(equations, sizes.size() - equations);
  const int64_t n = rules::product(unknowns), m = rules::product(sizes.slice(0, equations));
  TD_CHECK(n == m,
           "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
           "prod(self.shape[:other.ndim]), but got {} != {}",
           n, m);
  const Tensor x = op::linalg_solve(op::reshape(A, {n, n}), op::reshape(other, {-1}), true);
  return op::reshape(x, unknowns);
}

}  // namespace taeda::impl
