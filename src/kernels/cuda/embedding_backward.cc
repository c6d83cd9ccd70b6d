// The gradient of embedding: rows added to those that indices name, in the order of the indices
// (text/index_runs.cuh). Sums are in float, or in double, and rounded once.
#include "kernels/copy.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/indexed.h"
#include "kernels/cuda/number.h"
#include "kernels/cuda/pointwise.h"

namespace taeda::cuda {
namespace {

constexpr const char* kMessage =
    "embedding_dense_backward(): index {} is out of bounds for dimension {} with size {}";

// Rows divided by how often each is named, if it is.
void divide_by_frequency(const View& gw, const View& sums, const View& indices,
                         int64_t padding_idx) {
  const DType compute = sums.dtype;
  const int64_t rows = sums.sizes[0];
  const Dense times(gw.device, DType::kInt64, {{rows}}), flat(indices);
  kernels::fill(times, Scalar(int64_t{0}));
  const DimVector each{indices.numel}, one{1}, none{0}, across{1, 0};
  const View vector{flat.view().data, indices.dtype, each, one, indices.numel, true, gw.device};
  const Number number(DType::kInt64, Scalar(int64_t{1}));
  Indexed named{times, vector, vector, 0, kMessage};
  named.skipped = padding_idx;
  write_indexed(named, Combine::kSum, &number.view);
  const View ones{number.view.data, DType::kInt64, times.view().sizes, none, rows, true,
                  DeviceType::kCPU};
  const Loop maximum{"maximum", 0, false}, divide{"div", 0, false};
  const View counted[] = {times, ones};
  pointwise({maximum, DType::kInt64, DType::kInt64, nullptr}, times, counted);
  const View repeated{times.view().data, DType::kInt64, sums.sizes, across,
                      gw.numel,          true,          gw.device};
  const View divided[] = {sums, repeated};
  pointwise({divide, compute, compute, nullptr}, gw, divided);
}

}  // namespace

void embedding_backward(const View& gw, const View& gy, const View& indices, int64_t rows,
                        int64_t padding_idx, bool by_frequency) {
  if (gw.numel == 0) return;
  const DimVector sizes{rows, gw.numel / rows};
  const DType compute = dtype_info(gw.dtype).compute;
  // Of halves the quotients are rounded, not the sums.
  const bool wide = by_frequency && compute != gw.dtype;
  const Dense sums(gw.device, compute, wide ? IntSpan(sizes) : IntSpan()),
      terms(gw.device, compute, wide ? gy.sizes : IntSpan());
  if (wide) kernels::copy(terms, gy);
  const View& to = wide ? sums.view() : gw;
  kernels::fill(to, Scalar(0.0));
  Indices what{to, {&indices, 1}, 0, 1, false, false, false, kMessage};
  what.skipped = padding_idx;
  index_accumulate(what, wide ? terms.view() : gy);
  if (by_frequency) divide_by_frequency(gw, to, indices, padding_idx);
}

}  // namespace taeda::cuda
