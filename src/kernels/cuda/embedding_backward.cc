// The gradient of embedding: rows added to those that indices name (text/index.cuh).
#include "kernels/copy.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/indexed.h"
#include "kernels/cuda/number.h"
#include "kernels/cuda/pointwise.h"

namespace taeda::cuda {

// Sums are in float, or in double; by_frequency divides each row's by how often it is named.
void embedding_backward(const View& gw, const View& gy, const View& indices, int64_t rows,
                        int64_t padding_idx, bool by_frequency) {
  if (gw.numel == 0) return;
  const int64_t width = gw.numel / rows, count = indices.numel;
  const DType compute = dtype_info(gw.dtype).compute;
  const Dense sums(gw.device, compute, {{rows, width}}), gradient(gw.device, compute, gy.sizes),
      index(indices);
  kernels::fill(sums.view(), Scalar(0.0));
  kernels::copy(gradient.view(), gy);
  const DimVector flat{count, width}, by_row{width, 1}, one{1}, each{count};
  const View lines{gradient.view().data, compute, flat, by_row, gy.numel, true, gw.device};
  const View vector{index.view().data, indices.dtype, each, one, count, true, gw.device};
  const Expanded expanded(vector, flat, 0);
  Indexed what{sums.view(), lines, expanded.view, 0, kSelectMessage};
  what.skipped = padding_idx;
  write_indexed(what, Combine::kSum);
  if (by_frequency) {
    const Dense times(gw.device, compute, {{rows}});
    kernels::fill(times.view(), Scalar(0.0));
    const Number number(compute, Scalar(1.0));
    Indexed named{times.view(), vector, vector, 0, kSelectMessage};
    named.skipped = padding_idx;
    write_indexed(named, Combine::kSum, &number.view);
    const DimVector none{0}, across{1, 0};
    const View ones{number.view.data, compute, times.view().sizes, none, rows, true,
                    DeviceType::kCPU};
    const Loop maximum{"maximum", 0, false}, divide{"div", 0, false};
    const View counted[] = {times.view(), ones};
    pointwise({maximum, compute, compute, nullptr}, times.view(), counted);
    const View repeated{times.view().data, compute, sums.view().sizes, across,
                        gw.numel,          true,    gw.device};
    const View divided[] = {sums.view(), repeated};
    pointwise({divide, compute, compute, nullptr}, sums.view(), divided);
  }
  kernels::copy(gw, sums.view());
}

}  // namespace taeda::cuda
