// scatter_reduce: a copy, into which elements are combined where an index sends them
// (text/index.cuh). A mean is a sum that is divided by counts.
#include <limits>

#include "kernels/copy.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/indexed.h"
#include "kernels/cuda/number.h"
#include "kernels/cuda/pointwise.h"

namespace taeda::cuda {
namespace {

// What changes nothing that it is combined with.
Scalar identity(Combine how, DType t) {
  if (how == Combine::kSum) return Scalar(int64_t{0});
  if (how == Combine::kProd) return Scalar(int64_t{1});
  const bool least = how == Combine::kMax;
  if (t == DType::kBool) return Scalar(!least);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (is_inexact(t)) return Scalar(least ? -kInfinity : kInfinity);
  const int bits = static_cast<int>(8 * item_size(t));
  if (!is_signed(t)) return Scalar(least ? int64_t{0} : (int64_t{1} << bits) - 1);
  const auto most = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  return Scalar(least ? -most - 1 : most);
}

// x /= how many elements were added up, integers rounding down; by 1 where none was.
void divide(const View& x, const View& counts) {
  if (x.dtype == DType::kBool) return;
  const Number one(DType::kInt64, Scalar(int64_t{1}));
  const DimVector strides(x.sizes.size(), 0);
  const View ones{one.view.data, DType::kInt64, x.sizes, strides, x.numel, true, DeviceType::kCPU};
  const Loop maximum{"maximum", 0, false}, div{"div", 0, false}, floor{"div_floor", 0, false};
  const View counted[] = {counts, ones}, divided[] = {x, counts};
  pointwise({maximum, DType::kInt64, DType::kInt64, nullptr}, counts, counted);
  const DType compute = dtype_info(x.dtype).compute;
  const bool whole = !is_inexact(x.dtype);
  const DType type = whole ? DType::kInt64 : compute;
  pointwise({whole ? floor : div, type, type, nullptr}, x, divided);
}

}  // namespace

void scatter_reduce(const View& out, const View& self, int64_t dim, const View& index,
                    const View& src, std::string_view reduce, bool include_self) {
  if (out.numel == 0) return;
  kernels::copy(out, self);
  if (index.numel == 0) return;
  const auto run = [&](const View& to, const View& from, Combine how, const View* number) {
    write_indexed({to, from, index, dim,
                   "scatter_reduce(): index {} is out of bounds for dimension {} with size {}"},
                  how, number);
  };
  const Combine how = combine_named(reduce);
  const Number nothing(out.dtype, identity(how, out.dtype));
  if (!include_self) run(out, nothing.view, Combine::kSet, &nothing.view);
  run(out, src, how, nullptr);
  if (reduce != "mean") return;
  const Dense counts(out.device, DType::kInt64, out.sizes);
  fill(counts.view(), Scalar(int64_t{include_self}));
  const Number one(DType::kInt64, Scalar(int64_t{1}));
  run(counts.view(), one.view, Combine::kSum, &one.view);
  divide(out, counts.view());
}

}  // namespace taeda::cuda
