// torch.cov: covariances of variables, one a row.
#include "op/clamp_min.h"
#include "op/conj.h"
#include "op/div.h"
#include "op/eq.h"
#include "op/le.h"
#include "op/lt.h"
#include "op/min.h"
#include "op/mm.h"
#include "op/mul.h"
#include "op/reshape.h"
#include "op/squeeze.h"
#include "op/sub.h"
#include "op/sum.h"
#include "op/t.h"
#include "op/unsqueeze.h"
#include "ops/host.h"
#include "taeda/warning.h"

namespace taeda::impl {
namespace {

void check_weights(std::string_view name, const Tensor& weights, int64_t observations) {
  TD_CHECK(weights.numel() == observations,
           "cov(): expected {} to have the same numel as there are observations in the input but "
           "got {} != {}",
           name, weights.numel(), observations);
  TD_CHECK(observations == 0 || !known_true(op::lt(op::min(weights), Tensor(0))),
           "cov(): {} cannot be negative", name);
}

Tensor times(const Tensor& x, const Tensor& weights) {
  return weights.defined() ? op::mul(x, weights) : x;
}

}  // namespace

// With weights w = fweights * aweights: sum w (x - mean) (x - mean)^H / (sum w - correction * s),
// s = sum(w aweights) / sum w, or 1 without aweights.
Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  Tensor x = self.dim() < 2 ? op::reshape(self, {1, -1}) : self;
  const int64_t n = x.size(1);
  if (fweights.defined()) check_weights("fweights", fweights, n);
  if (aweights.defined()) check_weights("aweights", aweights, n);
  const Tensor w = fweights.defined() ? times(fweights, aweights) : aweights;
  const Tensor sum = w.defined() ? op::sum(w, {}, false, {}) : Tensor(n);
  TD_CHECK(!w.defined() || !known_true(op::eq(sum, Tensor(0))),
           "cov(): weights sum to zero, can't be normalized");

  const Tensor mean = op::div(op::sum(times(x, w), IntSpan{1}, false, {}), sum);
  const bool spread = aweights.defined() && correction != 0;
  const Tensor lost =
      spread ? op::div(op::sum(op::mul(w, aweights), {}, false, {}), sum) : Tensor(1);
  const Tensor freedom = op::sub(sum, op::mul(lost, Tensor(correction)), Scalar(1));
  if (known_true(op::le(freedom, Tensor(0)))) {
    warn(
        "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
        "observations.");
  }
  x = op::sub(x, op::unsqueeze(mean, 1), Scalar(1));
  const Tensor products = op::mm(x, op::conj(op::t(times(x, w))));
  return op::squeeze(op::div(products, op::clamp_min(freedom, Tensor(0))));
}

}  // namespace taeda::impl
