// unique, searchsorted, bincount, histc, isin: the hand-written bodies behind ops/index.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/interrupt.h"
#include "base/sliced.h"
#include "core/layout.h"
#include "kernels/cpu/sort/search.h"
#include "op/amax.h"
#include "op/amin.h"
#include "op/aminmax.h"
#include "op/clone.h"
#include "op/contiguous.h"
#include "op/full.h"
#include "op/gather.h"
#include "op/index_select.h"
#include "op/median.h"
#include "op/movedim.h"
#include "op/nanmedian.h"
#include "op/narrow.h"
#include "op/new_zeros.h"
#include "op/reshape.h"
#include "op/sort.h"
#include "op/to_dtype.h"
#include "ops/allocate.h"
#include "ops/device_bounds.h"
#include "ops/device_search.h"
#include "ops/dispatch.h"

namespace taeda::impl {
namespace {

Tensor dense(const Tensor& t) { return op::contiguous(t, MemoryFormat::kContiguous); }
Tensor dense(const Tensor& t, DType dtype) { return dense(op::to_dtype(t, dtype, false, {})); }

// The median of no elements: NaN.
Tensor of_nothing(const Tensor& self) {
  TensorOptions options(self.dtype());
  options.device = self.device();
  return op::full({}, Scalar(std::numeric_limits<double>::quiet_NaN()), options);
}

using on_device::Runs;

// Lengths of runs, and for each element of `order` the number of its run.
Runs runs_of(const std::vector<int64_t>& starts, int64_t n, const int64_t* order, bool inverse,
             bool counts) {
  const int64_t k = static_cast<int64_t>(starts.size());
  Runs r;
  r.starts = empty_tensor({k}, DType::kInt64, DeviceType::kCPU);
  r.counts = empty_tensor({counts ? k : 0}, DType::kInt64, DeviceType::kCPU);
  r.inverse = empty_tensor({inverse ? n : 0}, DType::kInt64, DeviceType::kCPU);
  const auto end_of = [&](int64_t i) { return i + 1 < k ? starts[static_cast<size_t>(i) + 1] : n; };
  int64_t* const first = r.starts.data<int64_t>();
  int64_t* const length = r.counts.data<int64_t>();
  int64_t* const run = r.inverse.data<int64_t>();
  in_slices(k, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) {
      const int64_t begin = starts[static_cast<size_t>(i)];
      first[i] = order ? order[begin] : begin;
      if (counts) length[i] = end_of(i) - begin;
    }
  });
  if (!inverse) return r;
  int64_t i = 0;
  in_slices(n, [&](int64_t from, int64_t to) {
    for (int64_t j = from; j < to; j++) {
      i += j == end_of(i);
      run[order ? order[j] : j] = i;
    }
  });
  return r;
}

// Of a sorted vector, or of the rows of a sorted matrix.
Runs runs_of(const Tensor& sorted, const Tensor& order, bool inverse, bool counts) {
  if (!sorted.device().is_cpu()) return on_device::runs_of(sorted, order, inverse, counts);
  const int64_t n = sorted.size(0), width = sorted.dim() == 2 ? sorted.size(1) : 1;
  return runs_of(cpu::run_starts(host_view(sorted), n, width), n,
                 order.defined() ? order.data<int64_t>() : nullptr, inverse, counts);
}

// Distinct integers of a range not much larger than their number are counted, not sorted. Nothing
// for others.
std::optional<std::tuple<Tensor, Tensor, Tensor>> unique_by_counting(const Tensor& flat,
                                                                     bool return_inverse,
                                                                     bool return_counts) {
  const bool fits = flat.device().is_cpu() && !is_inexact(flat.dtype()) &&
                    flat.dtype() != DType::kUInt64;  // in int64
  if (!fits || flat.numel() == 0) return std::nullopt;
  const Tensor wide = dense(flat, DType::kInt64);
  const int64_t *x = wide.data<int64_t>(), n = flat.numel();
  int64_t least = x[0], most = x[0];
  in_slices(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      least = std::min(least, x[i]);
      most = std::max(most, x[i]);
    }
  });
  const uint64_t range = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
  if (range >= static_cast<uint64_t>(4 * n) + 256) return std::nullopt;
  // Another thread may have written x since.
  const auto index_of = [=](int64_t i) {
    return std::min(static_cast<uint64_t>(x[i]) - static_cast<uint64_t>(least), range);
  };

  std::vector<int64_t> count = sliced_zeros<int64_t>(static_cast<int64_t>(range) + 1);
  in_slices(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) count[index_of(i)]++;
  });
  int64_t k = 0;
  in_slices(static_cast<int64_t>(count.size()), [&](int64_t begin, int64_t end) {
    k += end - begin - std::count(count.begin() + begin, count.begin() + end, 0);
  });
  const Tensor values = empty_tensor({k}, DType::kInt64, flat.device());
  const Tensor counts = empty_tensor({return_counts ? k : 0}, DType::kInt64, flat.device());
  const Tensor inverse = empty_tensor({return_inverse ? n : 0}, DType::kInt64, flat.device());
  int64_t rank = 0;
  Looks looks;
  for (size_t v = 0; v < count.size(); v++) {
    looks.after(1);
    if (count[v] == 0) continue;
    values.data<int64_t>()[rank] = least + static_cast<int64_t>(v);
    if (return_counts) counts.data<int64_t>()[rank] = count[v];
    count[v] = rank++;  // from here on the value's index
  }
  if (return_inverse) {
    int64_t* const to = inverse.data<int64_t>();
    in_slices(n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) to[i] = count[index_of(i)];
    });
  }
  return std::tuple(op::to_dtype(values, flat.dtype(), false, {}), inverse, counts);
}

// [size of dim, everything else], dense.
Tensor as_rows(const Tensor& self, int64_t dim) {
  TD_CHECK_INDEX(self.dim() > 0, "Dimension specified as {} but tensor has no dimensions", dim);
  const auto empty = std::count(self.sizes().begin(), self.sizes().end(), 0);
  TD_CHECK(empty == 0 || self.size(dim) == 0,
           "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  TD_CHECK(empty <= 1,
           "Number of zero sized dimensions is more than one, so unique cannot be applied ");
  const Tensor front = op::movedim(self, {{dim}}, {{0}});
  return dense(
      op::reshape(front, {self.size(dim), self.numel() == 0 ? 0 : self.numel() / self.size(dim)}));
}

// The slices of `self` along `dim` at these indices, from its rows; `dim` is outermost in memory.
Tensor slices_at(const Tensor& self, const Tensor& rows, int64_t dim, const Tensor& indices) {
  DimVector sizes(op::movedim(self, {{dim}}, {{0}}).sizes());
  sizes[0] = indices.numel();
  if (self.numel() == 0) {  // row-major, as in PyTorch
    DimVector empty(self.sizes());
    empty[wrap_dim(dim, self.dim())] = sizes[0];
    return empty_tensor(empty, self.dtype(), self.device());
  }
  return op::movedim(op::reshape(op::index_select(rows, 0, indices), sizes), {{0}}, {{dim}});
}

// uint16, uint32 and uint64, which no kernel sorts, as int64 in the same order, and back: half of
// uint64 is added, modulo 2^64.
Tensor ordered(const Tensor& x, DType from, DType to) {
  const Tensor wide = dense(x, DType::kInt64);
  if (from == DType::kUInt64 || to == DType::kUInt64) {
    int64_t* const numbers = wide.data<int64_t>();
    in_slices(wide.numel(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) numbers[i] ^= std::numeric_limits<int64_t>::min();
    });
  }
  return to == DType::kInt64 ? wide : op::to_dtype(wide, to, false, {});
}

using Distinct = std::tuple<Tensor, Tensor, Tensor>;

// What `unique` finds among numbers of these types.
template <class Unique>
Distinct of_stored(const Tensor& self, const Unique& unique) {
  auto [values, inverse, counts] = unique(ordered(self, self.dtype(), DType::kInt64));
  return {ordered(values, DType::kInt64, self.dtype()), inverse, counts};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted_, bool return_inverse,
                                            bool return_counts) {
  const DType dtype = self.dtype();
  const bool stored = is_storage_type(dtype);
  TD_CHECK_AS(ErrorKind::kNotImplemented, !self.is_complex() && (!stored || is_integral(dtype)),
              "\"_unique2\" not implemented for '{}'", scalar_type_name(dtype));
  if (stored)
    return of_stored(
        self, [&](const Tensor& x) { return _unique2(x, sorted_, return_inverse, return_counts); });
  const Tensor flat = op::reshape(self, {-1});
  if (auto counted = unique_by_counting(flat, return_inverse, return_counts)) {
    auto& [values, inverse, counts] = *counted;
    return {values, return_inverse ? op::reshape(inverse, self.sizes()) : inverse, counts};
  }
  const auto [sorted, order] = op::sort(flat, 0, false);
  const Runs r = runs_of(sorted, order, return_inverse, return_counts);
  return {op::index_select(flat, 0, r.starts),
          return_inverse ? op::reshape(r.inverse, self.sizes()) : r.inverse, r.counts};
}

std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool sorted_,
                                              bool return_inverse, bool return_counts) {
  if (is_storage_type(self.dtype()))
    return of_stored(self, [&](const Tensor& x) {
      return unique_dim(x, dim, sorted_, return_inverse, return_counts);
    });
  Tensor rows = as_rows(self, dim);
  // Comparisons must agree with each other, whoever writes self meanwhile.
  if (rows.storage() == self.storage()) rows = op::clone(rows, std::nullopt);
  const Tensor order = empty_tensor({rows.size(0)}, DType::kInt64, self.device());
  kernels::row_order(view_of(order), view_of(rows));
  const Tensor sorted = op::index_select(rows, 0, order);
  const Runs r = runs_of(sorted, order, return_inverse, return_counts);
  return {slices_at(self, rows, dim, r.starts), r.inverse, r.counts};
}

std::tuple<Tensor, Tensor, Tensor> _unique_consecutive(const Tensor& self, bool return_inverse,
                                                       bool return_counts, OptInt dim) {
  if (is_storage_type(self.dtype()))
    return of_stored(self, [&](const Tensor& x) {
      return _unique_consecutive(x, return_inverse, return_counts, dim);
    });
  const Tensor x = dim ? self : dense(op::reshape(self, {-1}));
  const Tensor rows = dim ? as_rows(self, *dim) : x;
  const Runs r = runs_of(rows, {}, return_inverse, return_counts);
  const Tensor inverse = !dim && return_inverse ? op::reshape(r.inverse, self.sizes()) : r.inverse;
  return {dim ? slices_at(self, rows, *dim, r.starts) : op::index_select(x, 0, r.starts), inverse,
          r.counts};
}

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
  TD_CHECK(!side || *side == "left" || *side == "right",
           "torch.searchsorted(): side can only be 'left' or 'right' but got {}",
           side.value_or(""));
  TD_CHECK(!(side && *side == "left" && right),
           "torch.searchsorted(): side and right can't be set to opposites, got side of left while "
           "right was True");
  right = right || (side && *side == "right");
  TD_CHECK(sorted_sequence.dim() > 0,
           "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
           "dimension");
  TD_CHECK_AS(ErrorKind::kNotImplemented,
              self.numel() == 0 || !(sorted_sequence.is_complex() || self.is_complex()),
              "torch.searchsorted(): complex tensors have no order");
  const bool shared = sorted_sequence.dim() == 1;
  const IntSpan a = sorted_sequence.sizes(), b = self.sizes();
  TD_CHECK(shared || (a.size() == b.size() && a.slice(0, a.size() - 1) == b.slice(0, b.size() - 1)),
           "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
           "dimensions of boundaries tensor "
           "and input value tensor must match, but we got boundaries tensor {} and input value "
           "tensor {}",
           a, b);
  Tensor sequence = sorted_sequence;
  if (sorter.defined()) {
    TD_CHECK(
        sorter.sizes() == sequence.sizes() && sorter.dtype() == DType::kInt64,
        "torch.searchsorted(): boundary and sorter must have the same size and sorter dtype long");
    on_device::checks_indices(
        sorter, sequence.sizes().back(),
        {"torch.searchsorted(): sorter index out of range: {} is not one of {}",
         {},
         ErrorKind::kRuntime});
    sequence = op::gather(sequence, sequence.dim() - 1, sorter, false);
  }
  const DType common = promote_types(sequence.dtype(), self.dtype());
  TD_CHECK_IMPLEMENTED(self.numel() == 0 || common != DType::kBool,
                       "\"searchsorted_out_cpu\" not implemented for 'Bool'");
  const int64_t m = a.back(), n = shared ? self.numel() : b.back();
  Tensor out = empty_tensor(b, DType::kInt64, self.device());
  if (self.numel() > 0) {
    const Tensor v = op::reshape(dense(self, common), {self.numel() / std::max<int64_t>(1, n), n});
    const Tensor s = op::reshape(dense(sequence, common), {shared ? 1 : self.numel() / n, m});
    kernels::searchsorted(view_of(out), view_of(s), view_of(v), right);
  }
  return out_int32 ? op::to_dtype(out, DType::kInt32, false, {}) : out;
}

namespace {

// The largest of x, which has elements, or a bit more where that is known for less.
int64_t upper_bound(const Tensor& x) {
  constexpr uint64_t kShortTable = 1 << 14;
  const uint64_t bits = cpu::bits_in_use(host_view(x));
  const int64_t bound = bits < kShortTable || bits >> 63 ? static_cast<int64_t>(bits)
                                                         : op::amax(x, {}, false).item<int64_t>();
  TD_CHECK(bound >= 0, "bincount only supports 1-d non-negative integral inputs.");
  return bound;
}

Tensor counts_of(const Tensor& x, int64_t minlength) {
  const int64_t bins = checked_add(upper_bound(x), 1, "bincount");
  const Tensor counts = op::new_zeros(x, {std::max(minlength, bins)}, DType::kInt64);
  cpu::bincount(host_view(counts), host_view(x));
  int64_t length = counts.numel();
  for (const auto* p = static_cast<const int64_t*>(counts.data_ptr());
       length > minlength && p[length - 1] == 0;)
    length--;
  return length == counts.numel() ? counts : op::clone(op::narrow(counts, 0, 0, length), {});
}

}  // namespace

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  const Tensor x = dense(self, DType::kInt64);
  if (x.numel() == 0) return op::new_zeros(x, {minlength}, DType::kInt64);
  if (!x.device().is_cpu()) return on_device::bincount(x, weights, minlength);
  if (!weights.defined()) return counts_of(x, minlength);
  const auto [least, most] = op::aminmax(x, std::nullopt, false);
  TD_CHECK(std::min(least.item<int64_t>(), most.item<int64_t>()) >= 0,
           "bincount only supports 1-d non-negative integral inputs.");
  const int64_t length = std::max(minlength, checked_add(most.item<int64_t>(), 1, "bincount"));
  Tensor out = op::new_zeros(
      x, {length}, weights.dtype() == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64);
  cpu::sum_by_index(host_view(out), host_view(x), host_view(weights));
  return out;
}

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  double low = min.to_double(), high = max.to_double();
  if (low == high && self.numel() > 0) {
    low = op::amin(self, {}, false).item<double>();
    high = op::amax(self, {}, false).item<double>();
  }
  TD_CHECK(std::isfinite(low) && std::isfinite(high), "range of [{}, {}] is not finite", low, high);
  TD_CHECK(low <= high, "torch.histc: max must be larger than min");
  if (low == high) {
    low -= 1;
    high += 1;
  }
  const DType compute = self.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  Tensor out = op::new_zeros(self, {bins}, compute);
  kernels::histogram(view_of(out), view_of(self), low, high);
  return op::to_dtype(out, self.dtype(), false, {});
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  const DType common = promote_types(elements.dtype(), test_elements.dtype());
  Tensor out = empty_tensor(elements.sizes(), DType::kBool, elements.device());
  const Tensor sorted =
      std::get<0>(op::sort(op::reshape(dense(test_elements, common), {-1}), 0, false));
  kernels::is_among(view_of(out), view_of(dense(elements, common)), view_of(sorted), invert);
  return out;
}

Tensor median(const Tensor& self) {
  if (self.numel() == 0) return of_nothing(self);
  return std::get<0>(op::median_dim(op::reshape(self, {-1}), 0, false));
}
Tensor nanmedian(const Tensor& self) {
  if (self.numel() == 0) return of_nothing(self);
  return std::get<0>(op::nanmedian_dim(op::reshape(self, {-1}), 0, false));
}

}  // namespace taeda::impl
