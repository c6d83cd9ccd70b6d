// embedding: rows of a table by indices, and the gradient (text/index.cuh).
#include "kernels/copy.h"
#include "kernels/cuda/indexed.h"
#include "kernels/cuda/number.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/workspace.h"
#include "kernels/product.h"

namespace taeda::cuda {
namespace {

// Rows of `table`, one for each index: the sizes of `rows`, of which the last is the row's.
struct RowsOf {
  RowsOf(const View& table, const View& rows, const View& indices) : sizes(rows.sizes) {
    for (size_t d = 0; d + 1 < sizes.size(); d++) {
      table_strides.push_back(0);
      index_strides.push_back(indices.strides[d]);
    }
    table_strides.push_back(table.strides[1]);
    index_strides.push_back(0);
    self = {table.data, table.dtype, sizes, table_strides, rows.numel, true, table.device};
    index = {indices.data, indices.dtype, sizes, index_strides, rows.numel, true, indices.device};
  }
  RowsOf(const RowsOf&) = delete;
  RowsOf& operator=(const RowsOf&) = delete;

  IntSpan sizes;
  DimVector table_strides, index_strides;
  View self, index;
};

// A dense tensor of a device for as long as a launch needs it.
struct Temporary {
  Temporary(Device device, DType type, IntSpan shape)
      : sizes(shape),
        memory(device, std::max<int64_t>(1, kernels::product(shape)) * item_size(type)) {
    int64_t stride = 1;
    strides = sizes;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
    view = {memory.data(), type, sizes, strides, kernels::product(shape), true, device};
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  DimVector sizes, strides;
  Workspace memory;
  View view;
};

}  // namespace

void embedding(const View& out, const View& weight, const View& indices, int64_t, bool, bool) {
  const RowsOf rows(weight, out, indices);
  Indexed what{rows.self, out, rows.index, 0, kSelectMessage};
  what.table = &weight;
  read_indexed(what);
}

// Sums are in float, or in double; by_frequency divides each row's by how often it is named.
void embedding_backward(const View& gw, const View& gy, const View& indices, int64_t rows,
                        int64_t padding_idx, bool by_frequency) {
  if (gw.numel == 0) return;
  const int64_t width = gw.numel / rows, count = indices.numel;
  const DType compute = dtype_info(gw.dtype).compute;
  const Temporary sums(gw.device, compute, {{rows, width}}), gradient(gw.device, compute, gy.sizes),
      index(gw.device, indices.dtype, indices.sizes);
  kernels::fill(sums.view, Scalar(0.0));
  kernels::copy(gradient.view, gy);
  kernels::copy(index.view, indices);
  const DimVector flat{count, width}, by_row{width, 1}, one{1}, each{count};
  const View lines{gradient.view.data, compute, flat, by_row, gy.numel, true, gw.device};
  const View vector{index.view.data, indices.dtype, each, one, count, true, gw.device};
  const Expanded expanded(vector, flat, 0);
  Indexed what{sums.view, lines, expanded.view, 0, kSelectMessage};
  what.skipped = padding_idx;
  write_indexed(what, Combine::kSum);
  if (by_frequency) {
    const Temporary times(gw.device, compute, {{rows}});
    kernels::fill(times.view, Scalar(0.0));
    const Number number(compute, Scalar(1.0));
    Indexed named{times.view, vector, vector, 0, kSelectMessage};
    named.skipped = padding_idx;
    write_indexed(named, Combine::kSum, &number.view);
    const DimVector none{0}, across{1, 0};
    const View ones{number.view.data, compute, times.sizes, none, rows, true, DeviceType::kCPU};
    const Loop maximum{"maximum", 0, false}, divide{"div", 0, false};
    const View counted[] = {times.view, ones};
    pointwise({maximum, compute, compute, nullptr}, times.view, counted);
    const View repeated{times.view.data, compute, sums.sizes, across, gw.numel, true, gw.device};
    const View divided[] = {sums.view, repeated};
    pointwise({divide, compute, compute, nullptr}, sums.view, divided);
  }
  kernels::copy(gw, sums.view);
}

}  // namespace taeda::cuda
