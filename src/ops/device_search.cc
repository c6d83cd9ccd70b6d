#include "ops/device_search.h"

#include <algorithm>
#include <limits>

#include "core/layout.h"
#include "kernels/cpu/sort/search.h"
#include "op/aminmax.h"
#include "op/any.h"
#include "op/cat.h"
#include "op/cumsum.h"
#include "op/expand.h"
#include "op/floor_divide.h"
#include "op/index_add_.h"
#include "op/index_put_.h"
#include "op/index_select.h"
#include "op/lt.h"
#include "op/narrow.h"
#include "op/ne.h"
#include "op/new_full.h"
#include "op/new_zeros.h"
#include "op/nonzero.h"
#include "op/remainder.h"
#include "op/reshape.h"
#include "op/scatter.h"
#include "op/stack.h"
#include "op/sub.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "op/where.h"
#include "ops/device_bounds.h"
#include "ops/host.h"

namespace taeda::on_device {
namespace {

constexpr int64_t kFloatBins = 4096;  // x bins / bins is x for integers below, in float

Tensor minus(const Tensor& a, const Tensor& b) { return op::sub(a, b, Scalar(int64_t{1})); }

// How many of the ascending numbers are not above each of 0, 1, ..., n - 1.
Tensor counts_below(const Tensor& ascending, int64_t n) {
  const Tensor out = empty_tensor({n}, DType::kInt64, ascending.device());
  kernels::count_not_above(view_of(out), view_of(dense_input(ascending)));
  return out;
}

// Where elements, or rows, differ from those before them.
Tensor run_starts(const Tensor& x) {
  const int64_t n = x.size(0);
  if (n == 0) return op::new_zeros(x, {0}, TensorOptions(DType::kInt64));
  Tensor differ = op::ne(op::narrow(x, 0, 1, n - 1), op::narrow(x, 0, 0, n - 1));
  const int64_t row = 1;
  if (x.dim() == 2) differ = op::any(differ, OptInts(IntSpan(&row, 1)), false);
  const Tensor first = op::new_full(x, {1}, Scalar(true), TensorOptions(DType::kBool));
  return op::reshape(op::nonzero(op::cat({{first, differ}}, 0)), {-1});
}

}  // namespace

Runs runs_of(const Tensor& sorted, const Tensor& order, bool inverse, bool counts) {
  const Tensor starts = run_starts(sorted), none = op::new_zeros(starts, {0}, {});
  const int64_t n = sorted.size(0), k = starts.size(0);
  Runs r{order.defined() ? op::index_select(order, 0, starts) : starts, none, none};
  if (n == 0) return r;
  if (counts) {
    const Tensor end = op::new_full(starts, {1}, Scalar(n), {});
    r.counts = minus(op::cat({{op::narrow(starts, 0, 1, k - 1), end}}, 0), starts);
  }
  if (inverse) {
    const Tensor number = minus(counts_below(starts, n), Tensor(Scalar(int64_t{1})));
    r.inverse = order.defined() ? op::scatter_src(number, 0, order, number) : number;
  }
  return r;
}

Tensor nonzero_static(const Tensor& x, int64_t size, int64_t fill_value) {
  const int64_t n = x.numel(), dims = x.dim();
  if (n == 0 || dims == 0)
    return op::new_full(x, {size, dims}, Scalar(fill_value), TensorOptions(DType::kInt64));
  const Tensor flags = op::reshape(op::ne(x, Tensor(Scalar(int64_t{0}))), {-1});
  // True element k, from 0, is behind as many as have no more than k true ones up to themselves.
  const Tensor at = counts_below(op::cumsum(flags, 0, std::nullopt), size);
  TensorList columns(static_cast<size_t>(dims));
  int64_t inner = 1;
  for (size_t d = columns.size(); d-- > 0; inner *= x.sizes()[d]) {
    const Tensor outer = op::floor_divide(at, Tensor(Scalar(inner)));
    columns[d] = op::remainder(outer, Tensor(Scalar(x.sizes()[d])));
  }
  const Tensor found = op::unsqueeze(op::lt(at, Tensor(Scalar(n))), 1);
  return op::where(found, op::stack(columns, 1), Tensor(Scalar(fill_value)));
}

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  const auto [least, most] = op::aminmax(x, std::nullopt, false);
  const HostElements<int64_t> ends(op::stack({{least, most}}, 0));
  TD_CHECK(ends[0] >= 0, "bincount only supports 1-d non-negative integral inputs.");
  const int64_t length = std::max(minlength, checked_add(ends[1], 1, "bincount"));
  if (!weights.defined()) {
    if (length <= kFloatBins) {
      const Tensor counts = empty_tensor({length}, DType::kInt64, x.device());
      kernels::histogram(view_of(counts), view_of(x), 0, static_cast<double>(length));
      return counts;
    }
    const Tensor counts = op::new_zeros(x, {length}, {});
    const Tensor ones = op::expand(op::new_full(x, {1}, Scalar(int64_t{1}), {}), x.sizes(), false);
    return op::index_add_(counts, 0, x, ones, Scalar(int64_t{1}));
  }
  const DType t = weights.dtype() == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
  const Tensor sums = op::new_zeros(x, {length}, TensorOptions(t));
  return op::index_put_(sums, {&x, 1}, op::to_dtype(weights, t, false, {}), /*accumulate=*/true);
}

namespace {

// That none is negative and the sum is what is said, which the device finds out by itself.
void check_repeats(const Tensor& repeats, const Tensor& sum, int64_t output_size) {
  constexpr std::string_view kNegative = "repeats can not be negative, got {}";
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  checks_indices(repeats, kAny, {kNegative, kNegative, ErrorKind::kRuntime});
  constexpr std::string_view kSum =
      "repeat_interleave: output_size is not the sum of repeats, which is {} more";
  checks_indices(minus(sum, Tensor(Scalar(output_size))), 1, {kSum, kSum, ErrorKind::kRuntime});
}

}  // namespace

Tensor repeated_indices(const Tensor& repeats, std::optional<int64_t> output_size) {
  TD_CHECK(!output_size || *output_size == 0 || (*output_size > 0 && repeats.numel() > 0),
           "repeat_interleave: output_size {} is not the sum of repeats", output_size.value_or(0));
  if (repeats.numel() == 0) return op::new_zeros(repeats, {0}, {});
  const Tensor ends = op::cumsum(repeats, 0, std::nullopt);
  const Tensor last = op::narrow(ends, 0, ends.numel() - 1, 1);
  int64_t total = output_size.value_or(0);
  if (output_size) {
    check_repeats(repeats, last, total);
  } else {
    const Tensor least = op::reshape(std::get<0>(op::aminmax(repeats, std::nullopt, false)), {1});
    const HostElements<int64_t> known(op::cat({{last, least}}, 0));
    TD_CHECK(known[1] >= 0, "repeats can not be negative");
    total = known[0];
  }
  return counts_below(ends, total);
}

}  // namespace taeda::on_device
