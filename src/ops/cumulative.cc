// The gradient of cumprod as an expression that can be differentiated again.
#include "op/conj.h"
#include "op/constant_pad_nd.h"
#include "op/cumprod.h"
#include "op/full.h"
#include "op/masked_fill.h"
#include "op/mul.h"
#include "op/narrow.h"
#include "op/sum.h"
#include "op/transpose.h"
#include "op/tril.h"
#include "op/unsqueeze.h"
#include "op/zeros_like.h"

namespace taeda::impl {

// gx_k = prod_{j < k} x_j sum_{i >= k} gy_i prod_{k < j <= i} x_j, without a division by x_k.
Tensor cumprod_gradient(const Tensor& gy, const Tensor& self, int64_t dim) {
  if (self.dim() == 0) return gy;
  if (self.numel() == 0) return gy;
  const Tensor x = op::conj(op::transpose(self, dim, -1)), g = op::transpose(gy, dim, -1);
  const int64_t n = x.size(-1);
  const Tensor ones = op::full({n, n}, Scalar(true), TensorOptions(DType::kBool));
  // [.., k, i]: x_i where i > k, else 1; their running products are wanted from the diagonal on.
  const Tensor later =
      op::masked_fill_Scalar(op::unsqueeze(x, -2), op::tril(ones, 0), Scalar(int64_t{1}));
  const Tensor products =
      op::masked_fill_Scalar(op::cumprod(later, -1, std::nullopt), op::tril(ones, -1), Scalar(0.0));
  const Tensor sums = op::sum(op::mul(products, op::unsqueeze(g, -2)),
                              OptInts(IntSpan({int64_t{-1}})), false, std::nullopt);
  const Tensor before =
      op::cumprod(op::constant_pad_nd(op::narrow(x, -1, 0, n - 1), {1, 0}, Scalar(int64_t{1})), -1,
                  std::nullopt);
  return op::transpose(op::mul(before, sums), dim, -1);
}

}  // namespace taeda::impl
