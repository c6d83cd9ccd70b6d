// torch.histogram and torch.histogramdd: counts of points in bins with edges.
#include "op/_cast.h"
#include "op/_histogram_bins.h"
#include "op/_histogramdd_counts.h"
#include "op/add.h"
#include "op/aminmax.h"
#include "op/bincount.h"
#include "op/clamp.h"
#include "op/clone.h"
#include "op/contiguous.h"
#include "op/detach.h"
#include "op/diff.h"
#include "op/div.h"
#include "op/eq.h"
#include "op/ge.h"
#include "op/isfinite.h"
#include "op/le.h"
#include "op/linspace.h"
#include "op/logical_and.h"
#include "op/logical_not.h"
#include "op/masked_select.h"
#include "op/mul.h"
#include "op/new_zeros.h"
#include "op/reshape.h"
#include "op/searchsorted.h"
#include "op/select.h"
#include "op/sub.h"
#include "op/sum.h"
#include "op/unbind.h"
#include "op/where.h"
#include "ops/host.h"

namespace taeda::impl {
namespace {

using Reals = std::optional<Span<const double>>;

// With more equal bins, rounding may miss one by more than one.
constexpr int64_t kManyBins = 1 << 16;

void check_points(const Tensor& self, size_t bins) {
  const DType dtype = self.dtype();
  TD_CHECK_IMPLEMENTED(dtype == DType::kFloat32 || dtype == DType::kFloat64,
                       "\"histogramdd\" not implemented for '{}'", scalar_type_name(dtype));
  TD_CHECK(static_cast<int64_t>(bins) == self.size(-1),
           "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
}

void check_weight(const Tensor& self, const Tensor& weight) {
  if (!weight.defined()) return;
  const DimVector points(self.sizes().begin(), self.sizes().end() - 1);
  TD_CHECK(weight.sizes() == IntSpan(points),
           "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
           "input tensor excluding its innermost dimension, but got input with shape {} and weight "
           "with shape {}",
           self.sizes(), weight.sizes());
  TD_CHECK(weight.dtype() == self.dtype(),
           "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
           "have the same dtype, but got input({}), and weight({})",
           self.dtype(), weight.dtype());
}

void check_edges(const Tensor& self, const Tensor& edges, size_t d) {
  TD_CHECK(edges.dtype() == self.dtype(),
           "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
           "input with dtype {} and bins for dimension {} with dtype {}",
           self.dtype(), d, edges.dtype());
  TD_CHECK(edges.dim() == 1,
           "torch.histogramdd: bins tensor should have one dimension, but got {} dimensions in the "
           "bins tensor for dimension {}",
           edges.dim(), d);
  TD_CHECK(edges.numel() > 0,
           "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in "
           "the bins tensor for dimension {}",
           d);
  TD_CHECK(edges.numel() > 1, "torch.histogram(): bins must be > 0, but got 0 for dimension {}", d);
}

// The edges of `bins` equal bins over the range that is given, or over that of the elements.
Tensor equal_edges(const Tensor& column, int64_t bins, const Reals& range, size_t d) {
  TensorOptions options(column.dtype());
  options.device = column.device();
  Tensor low = op::_cast(Tensor(0.0), column.dtype(), {}), high = op::add(low, Tensor(1.0), 1);
  if (range) {
    low = op::mul(high, Tensor((*range)[2 * d]));
    high = op::mul(high, Tensor((*range)[2 * d + 1]));
  } else if (column.numel() > 0) {
    std::tie(low, high) = op::aminmax(column, {}, false);
  }
  const auto number = [](const Tensor& t) { return known_number(t).value_or(Scalar(0)); };
  const Tensor finite = op::logical_and(op::isfinite(low), op::isfinite(high));
  TD_CHECK(!known_true(op::logical_not(finite)),
           "torch.histogramdd: dimension {}'s range [{}, {}] is not finite", d, number(low),
           number(high));
  TD_CHECK(!known_true(op::logical_not(op::le(low, high))),
           "torch.histogramdd: min should not exceed max, but got min {} max {} for dimension {}",
           number(low), number(high), d);
  const Tensor same = op::eq(low, high);
  low = op::where(same, op::sub(low, Tensor(0.5), 1), low);
  high = op::where(same, op::add(high, Tensor(0.5), 1), high);
  return op::linspace_tensor(low, high, bins + 1, options);
}

// The bin of each element, which is inside of one; the last one has its right edge.
Tensor bins_of(const Tensor& column, const Tensor& edges, bool equal) {
  if (equal) return op::_histogram_bins(column, edges);
  const Tensor found = op::searchsorted(edges, column, false, true, {}, {});
  return op::clamp(op::sub(found, Tensor(1), 1), Scalar(0), Scalar(edges.numel() - 2));
}

std::tuple<Tensor, TensorList> by_counts(const Tensor& self, IntSpan bins, const Reals& range,
                                         const Tensor& weight, bool density) {
  check_points(self, bins.size());
  for (size_t d = 0; d < bins.size(); d++) {
    TD_CHECK(bins[d] > 0, "torch.histogram(): bins must be > 0, but got {} for dimension {}",
             bins[d], d);
  }
  check_weight(self, weight);
  TD_CHECK(!range || range->size() == 2 * bins.size(),
           "torch.histogramdd: for a {}-dimensional histogram range should have {} elements, but "
           "got {}",
           bins.size(), 2 * bins.size(), range->size());
  TensorList edges;
  DimVector equal;
  for (size_t d = 0; d < bins.size(); d++) {
    const Tensor column = op::select(op::detach(self), -1, static_cast<int64_t>(d));
    edges.push_back(equal_edges(column, bins[d], range, d));
    equal.push_back(bins[d] <= kManyBins);
  }
  const Tensor hist =
      op::_histogramdd_counts(self, edges, equal, range.has_value(), weight, density);
  return {hist, edges};
}

std::tuple<Tensor, TensorList> by_edges(const Tensor& self, TensorSpan bins, const Tensor& weight,
                                        bool density) {
  check_points(self, bins.size());
  TensorList edges;
  for (size_t d = 0; d < bins.size(); d++) {
    check_edges(self, bins[d], d);
    edges.push_back(op::clone(op::detach(bins[d]), {}));
  }
  check_weight(self, weight);
  const DimVector equal(bins.size(), 0);
  return {op::_histogramdd_counts(self, edges, equal, true, weight, density), edges};
}

// Numbers as points of one dimension, and their weights in a row.
Tensor points_of(const Tensor& self) { return op::reshape(self, {-1, 1}); }
Tensor weights_of(const Tensor& self, const Tensor& weight) {
  const bool alike = weight.defined() && weight.numel() == self.numel();
  return alike ? op::reshape(weight, {-1}) : weight;
}

std::tuple<Tensor, Tensor> of_one_dimension(const std::tuple<Tensor, TensorList>& made) {
  return {std::get<0>(made), std::get<1>(made)[0]};
}

}  // namespace

// The points lie in rows of the last dimension; `filtered` where some may be outside of all bins.
Tensor _histogramdd_counts(const Tensor& self, TensorSpan edges, IntSpan equal, bool filtered,
                           const Tensor& weight, bool density) {
  const int64_t dims = static_cast<int64_t>(edges.size());
  if (dims == 0) {  // points without coordinates are in no bin
    const Tensor none = op::new_zeros(self, {}, {});
    return density ? op::div(none, none) : none;
  }
  TensorList columns;
  for (const Tensor& column : op::unbind(op::reshape(self, {-1, dims}), 1)) {
    columns.push_back(op::contiguous(column, MemoryFormat::kContiguous));
  }
  Tensor weights = weight.defined() ? op::reshape(weight, {-1}) : weight;
  if (filtered || std::find(equal.begin(), equal.end(), 0) != equal.end()) {
    Tensor inside;
    for (size_t d = 0; d < edges.size(); d++) {
      const Tensor within = op::logical_and(op::ge(columns[d], op::select(edges[d], 0, 0)),
                                            op::le(columns[d], op::select(edges[d], 0, -1)));
      inside = inside.defined() ? op::logical_and(inside, within) : within;
    }
    for (Tensor& column : columns) column = op::masked_select(column, inside);
    if (weights.defined()) weights = op::masked_select(weights, inside);
  }
  Tensor flat;
  DimVector shape;
  int64_t length = 1;
  for (size_t d = 0; d < edges.size(); d++) {
    const int64_t bins = edges[d].numel() - 1;
    const Tensor index = bins_of(columns[d], edges[d], equal[d] != 0);
    flat = flat.defined() ? op::add(op::mul(flat, Tensor(bins)), index, 1) : index;
    shape.push_back(bins);
    length *= bins;
  }
  Tensor hist = op::_cast(op::bincount(flat, weights, length), self.dtype(), {});
  hist = op::reshape(hist, shape);
  if (!density) return hist;
  hist = op::div(hist, op::sum(hist, {}, false, {}));
  for (int64_t d = 0; d < dims; d++) {
    DimVector sizes(static_cast<size_t>(dims), 1);
    sizes[static_cast<size_t>(d)] = -1;
    const Tensor widths = op::diff(edges[static_cast<size_t>(d)], 1, 0, {}, {});
    hist = op::div(hist, op::reshape(widths, sizes));
  }
  return hist;
}

std::tuple<Tensor, Tensor> histogram_bins_tensor(const Tensor& self, const Tensor& bins,
                                                 const Tensor& weight, bool density) {
  return of_one_dimension(by_edges(points_of(self), {&bins, 1}, weights_of(self, weight), density));
}
std::tuple<Tensor, Tensor> histogram_bin_ct(const Tensor& self, int64_t bins, Reals range,
                                            const Tensor& weight, bool density) {
  const Tensor points = points_of(self);
  return of_one_dimension(by_counts(points, {bins}, range, weights_of(self, weight), density));
}
std::tuple<Tensor, TensorList> histogramdd(const Tensor& self, IntSpan bins, Reals range,
                                           const Tensor& weight, bool density) {
  return by_counts(self, bins, range, weight, density);
}
std::tuple<Tensor, TensorList> histogramdd_int_bins(const Tensor& self, int64_t bins, Reals range,
                                                    const Tensor& weight, bool density) {
  const DimVector each(static_cast<size_t>(self.size(-1)), bins);
  return by_counts(self, each, range, weight, density);
}
std::tuple<Tensor, TensorList> histogramdd_TensorList_bins(const Tensor& self, TensorSpan bins,
                                                           Reals, const Tensor& weight,
                                                           bool density) {
  return by_edges(self, bins, weight, density);
}

}  // namespace taeda::impl
