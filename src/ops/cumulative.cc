// Gradient and tangent of cumprod as expressions that can be differentiated again, by
// Hillis and Steele's scan: windows of 1, 2, 4, ... elements are combined with those before them.
#include "op/add.h"
#include "op/conj.h"
#include "op/constant_pad_nd.h"
#include "op/cumprod.h"
#include "op/mul.h"
#include "op/narrow.h"
#include "op/transpose.h"

namespace taeda::impl {
namespace {

// t[.., i - by], `fill` in front.
Tensor later(const Tensor& t, int64_t by, int64_t fill) {
  return op::constant_pad_nd(op::narrow(t, -1, 0, t.size(-1) - by), {by, 0}, Scalar(fill));
}
// t[.., i + by], `fill` behind.
Tensor earlier(const Tensor& t, int64_t by, int64_t fill) {
  return op::constant_pad_nd(op::narrow(t, -1, by, t.size(-1) - by), {0, by}, Scalar(fill));
}
Tensor add(const Tensor& a, const Tensor& b) { return op::add(a, b, Scalar(int64_t{1})); }

}  // namespace

// gx_k = prod_{j < k} x_j after_k, where after_k = gy_k + x_{k+1} after_{k+1}: a linear recurrence,
// whose windows are pairs of a factor and a sum.
Tensor cumprod_gradient(const Tensor& gy, const Tensor& self, int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) return gy;
  const Tensor x = op::conj(op::transpose(self, dim, -1));
  const int64_t n = x.size(-1);
  Tensor factor = earlier(x, 1, 0), after = op::transpose(gy, dim, -1);
  for (int64_t width = 1; width < n; width *= 2) {
    after = add(after, op::mul(factor, earlier(after, width, 0)));
    factor = op::mul(factor, earlier(factor, width, 0));
  }
  const Tensor before = op::cumprod(later(x, 1, 1), -1, std::nullopt);
  return op::transpose(op::mul(before, after), dim, -1);
}

// A window is its product and the tangent of that.
Tensor cumprod_tangent(const Tensor& tangent, const Tensor& self, int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) return tangent;
  Tensor product = op::transpose(self, dim, -1), sum = op::transpose(tangent, dim, -1);
  for (int64_t width = 1; width < self.size(dim); width *= 2) {
    const Tensor before = later(product, width, 1);
    sum = add(op::mul(sum, before), op::mul(later(sum, width, 0), product));
    product = op::mul(product, before);
  }
  return op::transpose(sum, dim, -1);
}

}  // namespace taeda::impl
