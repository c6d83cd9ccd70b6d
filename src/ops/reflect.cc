// Products with Householder reflectors, one after another: what gradients differentiate.
#include "op/add.h"
#include "op/conj.h"
#include "op/eye.h"
#include "op/mH.h"
#include "op/matmul.h"
#include "op/mul.h"
#include "op/narrow.h"
#include "op/sub.h"
#include "op/tril.h"
#include "op/unsqueeze.h"

namespace taeda::impl {

Tensor _reflect(const Tensor& self, const Tensor& tau, const Tensor& other, bool adjoint) {
  const int64_t count = tau.size(-1), n = self.size(-2);
  TensorOptions options(self.dtype());
  options.device = self.device();
  const Tensor identity = op::eye(n, options);
  Tensor x = other;
  for (int64_t k = 0; k < count; k++) {
    const int64_t i = adjoint ? k : count - 1 - k;
    const Tensor below = op::tril(op::narrow(self, -1, i, 1), -i - 1);
    const Tensor v = op::add(below, op::narrow(identity, -1, i, 1), Scalar(1));
    const Tensor scale = op::unsqueeze(op::narrow(tau, -1, i, 1), -1);
    const Tensor product =
        op::matmul(op::mul(adjoint ? op::conj(scale) : scale, v), op::matmul(op::mH(v), x));
    x = op::sub(x, product, Scalar(1));
  }
  return x;
}

}  // namespace taeda::impl
