// Products of all elements but one, the partial derivatives of a product. Where the product is an
// ordinary number they are quotients. Beside zeros and infinities they are made from both sides
// instead, which is exact and so are its own derivatives: how many zeros there are does not matter.
#include <functional>
#include <numeric>

#include "op/abs.h"
#include "op/any.h"
#include "op/arange.h"
#include "op/argsort.h"
#include "op/cat.h"
#include "op/constant_pad_nd.h"
#include "op/cummax.h"
#include "op/cumprod.h"
#include "op/div.h"
#include "op/flip.h"
#include "op/gather.h"
#include "op/ge.h"
#include "op/index_select.h"
#include "op/isfinite.h"
#include "op/logical_and.h"
#include "op/logical_not.h"
#include "op/max.h"
#include "op/mul.h"
#include "op/narrow.h"
#include "op/ne.h"
#include "op/ones_like.h"
#include "op/permute.h"
#include "op/reshape.h"
#include "op/restore_reduced.h"
#include "op/sub.h"
#include "op/where.h"
#include "ops/contract.h"
#include "ops/dispatch.h"
#include "ops/host.h"
#include "ops/reduce_rules.h"
#include "ops/rules.h"

namespace taeda::impl {
namespace {

Scalar one() { return Scalar(int64_t{1}); }
Tensor reversed(const Tensor& t) { return op::flip(t, DimVector{-1}); }
Tensor flat(const Tensor& t) { return op::reshape(t, IntSpan({int64_t{-1}})); }
// 0, 1, .. n - 1 beside `like`.
Tensor counted(int64_t n, const Tensor& like) {
  TensorOptions options(DType::kInt64);
  options.device = like.device();
  return op::arange(Scalar(n), options);
}

// t[.., i - by], `fill` in front.
Tensor later(const Tensor& t, int64_t by, const Scalar& fill) {
  return op::constant_pad_nd(op::narrow(t, -1, 0, t.size(-1) - by), {by, 0}, fill);
}

// Whether all are neither zero, subnormal, infinite nor NaN.
bool all_normal(const Tensor& t) {
  const ExcludeKeys values_only(KeySet(Key::kAutograd) | Key::kForward);
  const Tensor size = op::abs(t);
  const bool narrow_range = size.dtype() == DType::kFloat16;
  const bool wide_range = size.dtype() == DType::kFloat64;
  const double least = narrow_range ? 0x1p-14 : wide_range ? 0x1p-1022 : 0x1p-126;
  const Tensor normal = op::logical_and(op::ge(size, Tensor(Scalar(least))), op::isfinite(size));
  return !known_true(op::any(op::logical_not(normal), std::nullopt, false));
}

Tensor products_before(const Tensor& x) {
  return op::cumprod(later(x, 1, one()), -1, std::nullopt);
}

// The same within runs of equal elements of `group`, by windows of 1, 2, 4, ... elements that stop
// where their run begins.
Tensor products_before(const Tensor& x, const Tensor& group) {
  const Tensor index = counted(x.size(0), x);
  const Tensor starts = op::ne(group, later(group, 1, Scalar(int64_t{-1})));
  const Tensor first =
      std::get<0>(op::cummax(op::where(starts, index, Tensor(Scalar(int64_t{0}))), 0));
  const Tensor rank = op::sub(index, first, one());
  const int64_t longest = op::max(rank).item<int64_t>();
  const auto window = [&](const Tensor& products, int64_t width) {
    const Tensor inside = op::ge(rank, Tensor(Scalar(width)));
    return op::where(inside, later(products, width, one()), Tensor(one()));
  };
  Tensor products = window(x, 1);
  for (int64_t width = 1; width <= longest; width *= 2)
    products = op::mul(products, window(products, width));
  return products;
}

// For each element of the vector x the product of all others with the same number in `group`.
Tensor products_of_others(const Tensor& x, const Tensor& group) {
  if (x.numel() == 0) return x;
  const Tensor order = op::argsort(group, 0, false, true);
  const Tensor sorted = op::index_select(group, 0, order), y = op::index_select(x, 0, order);
  const Tensor after = reversed(products_before(reversed(y), reversed(sorted)));
  const Tensor products = op::mul(products_before(y, sorted), after);
  return op::index_select(products, 0, op::argsort(order, 0, false, true));
}

}  // namespace

Tensor prod_of_others(const Tensor& self, const Tensor& result, OptInts dims) {
  if (self.dim() == 0) return op::ones_like(self, {}, std::nullopt);
  if (self.numel() == 0) return self;
  if (all_normal(result)) return op::div(op::restore_reduced(result, self.sizes(), dims), self);
  const DimVector kept = rules::reduced(self.sizes(), dims, true);
  DimVector order, back(kept);  // reduced dimensions last
  for (const bool reduced : {false, true}) {
    for (size_t d = 0; d < kept.size(); d++) {
      if ((kept[d] == 1) == reduced) order.push_back(static_cast<int64_t>(d));
    }
  }
  for (size_t i = 0; i < order.size(); i++)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const int64_t lines =
      std::accumulate(kept.begin(), kept.end(), int64_t{1}, std::multiplies<int64_t>());
  const Tensor moved = op::permute(self, order),
               x = op::reshape(moved, IntSpan({lines, self.numel() / lines}));
  const Tensor products = op::mul(products_before(x), reversed(products_before(reversed(x))));
  return op::permute(op::reshape(products, moved.sizes()), back);
}

std::tuple<Tensor, Tensor> scatter_prod_of_others(const Tensor& self, int64_t dim,
                                                  const Tensor& index, const Tensor& src,
                                                  bool include_self, const Tensor& result) {
  Tensor used = src;  // `src` may be larger than `index`
  for (int64_t d = 0; d < index.dim(); d++) used = op::narrow(used, d, 0, index.size(d));
  const Tensor product = op::gather(result, dim, index, false);
  if (all_normal(include_self ? result : product)) {
    const Tensor others_self =
        include_self ? op::div(result, self) : op::ones_like(self, {}, std::nullopt);
    return {others_self, op::div(product, used)};
  }
  const Tensor own = counted(self.numel(), self);
  const Tensor target = flat(op::gather(op::reshape(own, self.sizes()), dim, index, false));
  if (!include_self) {
    const Tensor others = products_of_others(flat(used), target);
    return {op::ones_like(self, {}, std::nullopt), op::reshape(others, used.sizes())};
  }
  const Tensor others = products_of_others(op::cat(TensorList{flat(self), flat(used)}, 0),
                                           op::cat(TensorList{own, target}, 0));
  return {op::reshape(op::narrow(others, 0, 0, self.numel()), self.sizes()),
          op::reshape(op::narrow(others, 0, self.numel(), used.numel()), used.sizes())};
}

}  // namespace taeda::impl
