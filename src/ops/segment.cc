// torch.segment_reduce: reductions over consecutive elements of a dimension.
#include <limits>

#include "op/add.h"
#include "op/any.h"
#include "op/arange.h"
#include "op/constant_pad_nd.h"
#include "op/contiguous.h"
#include "op/cumsum.h"
#include "op/diff.h"
#include "op/div.h"
#include "op/eq.h"
#include "op/expand.h"
#include "op/logical_or.h"
#include "op/lt.h"
#include "op/min.h"
#include "op/mul.h"
#include "op/narrow.h"
#include "op/ne.h"
#include "op/new_full.h"
#include "op/reshape.h"
#include "op/scatter_reduce.h"
#include "op/searchsorted.h"
#include "op/sub.h"
#include "op/sum.h"
#include "op/where.h"
#include "ops/device_bounds.h"
#include "ops/host.h"

namespace taeda::impl {
namespace {

enum class Kind { kSum, kMean, kProd, kMax, kMin };

Kind kind_of(std::string_view reduce) {
  if (reduce == "sum") return Kind::kSum;
  if (reduce == "mean") return Kind::kMean;
  if (reduce == "prod") return Kind::kProd;
  if (reduce == "max" || reduce == "amax") return Kind::kMax;
  if (reduce == "min" || reduce == "amin") return Kind::kMin;
  fail(ErrorKind::kRuntime, "reduce argument must be either sum, prod, mean, amax or amin, got {}",
       reduce);
}

double identity(Kind kind) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return kind == Kind::kProd ? 1 : kind == Kind::kMax ? -kInf : kind == Kind::kMin ? kInf : 0;
}

std::string_view scatter_name(Kind kind) {
  return kind == Kind::kProd  ? "prod"
         : kind == Kind::kMax ? "amax"
         : kind == Kind::kMin ? "amin"
                              : "sum";
}

// Where segments begin and the last one ends, in rows.
Tensor bounds_of(const Tensor& lengths, int64_t size, bool unsafe) {
  if (!unsafe) {
    TD_CHECK(!known_true(op::any(op::lt(lengths, Tensor(0)), std::nullopt, false)),
             "lengths contains negative value!");
    const Tensor totals = op::sum(lengths, IntSpan{-1}, false, std::nullopt);
    TD_CHECK(!known_true(op::any(op::ne(totals, Tensor(size)), std::nullopt, false)),
             "segment_reduce(): Expected all rows of lengths along axis to sum to "
             "data.size(lengths.dim()-1) when !unsafe.");
  }
  return op::constant_pad_nd(op::cumsum(lengths, -1, std::nullopt), {1, 0}, Scalar(0));
}

// That no segment ends before it begins; a device looks at it by itself.
void check_counts(const Tensor& counts) {
  constexpr std::string_view kMessage =
      "segment_reduce(): Expected segment_length >= 0, but got a segment of {}";
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  if (on_device::checks_indices(counts, kAny, {kMessage, kMessage, ErrorKind::kRuntime})) return;
  TD_CHECK(!known_true(op::any(op::lt(counts, Tensor(0)), std::nullopt, false)),
           "segment_reduce(): Expected segment_length >= 0, but offsets decrease");
}

// The segment of each of `size` elements, `count` for those in none.
Tensor segments(const Tensor& bounds, int64_t size, int64_t count) {
  TensorOptions options(DType::kInt64);
  options.device = bounds.device();
  DimVector sizes = bounds.sizes();
  sizes.back() = size;
  const Tensor elements = op::contiguous(op::expand(op::arange(size, options), sizes, false),
                                         MemoryFormat::kContiguous);
  const Tensor after = op::searchsorted(op::contiguous(bounds, MemoryFormat::kContiguous), elements,
                                        false, true, std::nullopt, Tensor());
  return op::where(op::eq(after, Tensor(0)), Tensor(count), op::sub(after, Tensor(1), Scalar(1)));
}

// `t`, which has the first dimensions of `like`, with the others of size 1.
Tensor with_dims_of(const Tensor& t, const Tensor& like) {
  DimVector sizes = t.sizes();
  while (static_cast<int64_t>(sizes.size()) < like.dim()) sizes.push_back(1);
  return op::reshape(t, sizes);
}

Tensor with_initial(Kind kind, const Tensor& reduced, const Scalar& initial) {
  const Tensor value = op::new_full(reduced, {}, initial, {});
  if (kind == Kind::kProd) return op::mul(reduced, value);
  if (kind == Kind::kSum || kind == Kind::kMean) return op::add(reduced, value, Scalar(1));
  const bool largest = kind == Kind::kMax;
  const Tensor replaced = largest ? op::lt(reduced, value) : op::lt(value, reduced);
  return op::where(replaced, value, reduced);
}

Tensor divided(const Tensor& sum, const Tensor& counts, bool with_initial) {
  const Tensor mean = op::div(sum, counts);
  return with_initial ? op::where(op::eq(counts, Tensor(0)), sum, mean) : mean;
}

}  // namespace

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths,
                      const Tensor& indices, const Tensor& offsets, int64_t axis, bool unsafe,
                      const OptScalar& initial) {
  const Kind kind = kind_of(reduce);
  TD_CHECK(!indices.defined(), "segment_reduce(): indices based reduction is not supported yet.");
  const Tensor& given = offsets.defined() ? offsets : lengths;
  TD_CHECK(given.defined(), "segment_reduce(): Either lengths or offsets must be defined.");
  TD_CHECK(given.dim() > 0 && given.dim() <= data.dim(),
           "segment_reduce(): Expected data.dim() >= lengths.dim() > 0, but got {} and {}",
           data.dim(), given.dim());
  TD_CHECK(axis == given.dim() - 1,
           "segment_reduce(): Expected axis to be the last dimension of lengths but got {}.", axis);
  const IntSpan batch = given.sizes().slice(0, static_cast<size_t>(axis));
  TD_CHECK(
      batch == data.sizes().slice(0, static_cast<size_t>(axis)),
      "segment_reduce(): Expected data and lengths to be of the same size before axis, but got "
      "{} and {}",
      data.sizes(), given.sizes());

  TD_CHECK_AS(ErrorKind::kNotImplemented,
              given.dtype() == DType::kInt64 || given.dtype() == DType::kInt32,
              "segment_reduce() not implemented for lengths or offsets of {}",
              scalar_type_name(given.dtype()));

  const int64_t size = data.size(axis);
  const Tensor bounds = offsets.defined() ? offsets : bounds_of(lengths, size, unsafe);
  const int64_t count = bounds.size(-1) - 1;
  TD_CHECK(count >= 0, "segment_reduce(): offsets must have at least one element");
  const Tensor counts = op::diff(bounds, 1, -1, Tensor(), Tensor());
  if (offsets.defined() || unsafe) check_counts(counts);

  DimVector sizes = data.sizes();
  sizes[static_cast<size_t>(axis)] = count + 1;  // the last one takes what lies in none
  const Tensor start = op::new_full(data, sizes, identity(kind), {});
  const Tensor index =
      op::expand(with_dims_of(segments(bounds, size, count), data), data.sizes(), false);
  Tensor reduced = op::scatter_reduce_two(start, axis, index, data, scatter_name(kind),
                                          /*include_self=*/false);
  reduced = op::contiguous(op::narrow(reduced, axis, 0, count), MemoryFormat::kContiguous);
  if (initial) reduced = with_initial(kind, reduced, *initial);
  return kind == Kind::kMean ? divided(reduced, with_dims_of(counts, data), initial.has_value())
                             : reduced;
}

}  // namespace taeda::impl
