// One layout as another.
#include "core/layout.h"
#include "op/_unique_consecutive.h"
#include "op/cat.h"
#include "op/diff.h"
#include "op/expand.h"
#include "op/repeat_interleave.h"
#include "op/reshape.h"
#include "op/slice.h"
#include "op/sort.h"
#include "ops/sparse/dense.h"
#include "ops/sparse/parts.h"

namespace taeda::sparse {
namespace {

Tensor rows_between(const Tensor& t, int64_t first, int64_t last) {
  return op::slice(t, 0, first, last, 1);
}

// The values of a compressed tensor one behind the other, [n, ...].
Tensor flat_values(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  const int64_t batch = parts.plain.dim();
  return op::reshape(parts.values, join({parts.plain.numel()},
                                        slice(parts.values.sizes(), batch, parts.values.dim())));
}

// Batch coordinates, row and column of each value; of each block where there are blocks.
Tensor coordinates(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  const Tensor counts = op::diff(cast(parts.indices, DType::kInt64), 1, -1, Tensor(), Tensor());
  const Tensor lines =
      op::repeat_interleave_tensor(op::reshape(counts, {counts.numel()}), std::nullopt);
  const Tensor outer = unravel(lines, counts.sizes());
  const Tensor plain = op::reshape(cast(parts.plain, DType::kInt64), {1, parts.plain.numel()});
  if (is_by_rows(parts.layout)) return op::cat(TensorList{outer, plain}, 0);
  const int64_t batch = batch_dim(t);
  return op::cat(
      TensorList{rows_between(outer, 0, batch), plain, rows_between(outer, batch, batch + 1)}, 0);
}

// [k, n] coordinates of blocks as those of their elements, [k, n * height * width].
Tensor of_elements(const Tensor& blocks, int64_t height, int64_t width) {
  const int64_t k = blocks.size(0), n = blocks.size(1);
  const Device device = blocks.device();
  const auto spread = [&](const Tensor& row, int64_t step, const Tensor& inside) {
    const Tensor at = add(mul(op::reshape(row, {1, n, 1, 1}), step), inside);
    return op::reshape(op::expand(at, {1, n, height, width}, false), {1, n * height * width});
  };
  const Tensor down = op::reshape(arange(height, device), {1, 1, height, 1}),
               along = op::reshape(arange(width, device), {1, 1, 1, width});
  TensorList rows;
  for (int64_t d = 0; d + 2 < k; d++)
    rows.push_back(
        spread(rows_between(blocks, d, d + 1), 1, zeros({1, 1, 1, 1}, DType::kInt64, device)));
  rows.push_back(spread(rows_between(blocks, k - 2, k - 1), height, down));
  rows.push_back(spread(rows_between(blocks, k - 1, k), width, along));
  return op::cat(rows, 0);
}

}  // namespace

Tensor as_coo(const Tensor& t) {
  if (is_coo(t)) return t;
  Tensor indices = coordinates(t), values = flat_values(t);
  const Layout layout = t.layout();
  if (is_blocked(layout)) {
    const int64_t height = values.size(1), width = values.size(2);
    indices = of_elements(indices, height, width);
    values = op::reshape(values, join({indices.size(1)}, slice(values.sizes(), 3, values.dim())));
  }
  // Those by rows are sorted already, but for blocks.
  return make_coo(indices, values, t.sizes(), layout == Layout::kSparseCsr);
}

Tensor coalesced(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  if (parts.coalesced) return t;
  const int64_t n = nnz(t);
  if (n < 2) return with_coalesced(t, true);
  const DimVector sizes = slice(t.sizes(), 0, sparse_dim(t));
  const auto [sorted, order] =
      op::sort_stable(linear_indices(parts.indices, sizes), true, 0, false);
  const auto [linear, number, counts] = op::_unique_consecutive(sorted, true, false, std::nullopt);
  Tensor values = take(parts.values, order);
  if (linear.numel() != n) values = sum_rows(values, number, linear.numel());
  return make_coo(unravel(linear, sizes), values, t.sizes(), true);
}

Tensor as_dense(const Tensor& t) {
  const Tensor coo = as_coo(t);
  const SparseParts& parts = sparse_parts(coo);
  const DimVector sizes = slice(t.sizes(), 0, sparse_dim(coo));
  const Tensor rows = sum_rows(parts.values, linear_indices(parts.indices, sizes), product(sizes));
  return op::reshape(rows, t.sizes());
}

namespace {

// Sorted coordinates [batch..., line, place] with the same number of values in each batch.
Tensor compress(const Tensor& coo, Layout layout, IntSpan sizes) {
  const SparseParts& parts = sparse_parts(coo);
  const Tensor& indices = parts.indices;
  const int64_t batch = indices.size(0) - 2, n = indices.size(1);
  const int64_t lines = coo.size(batch);
  const DimVector batches = slice(sizes, 0, batch);
  const int64_t count = product(batches);
  const int64_t each = count ? n / count : 0;
  Tensor line = op::reshape(rows_between(indices, batch, batch + 1), {n});
  Tensor begins;
  if (batch == 0) {
    begins = offsets_of(line, lines);
  } else {
    TensorList all;
    const Tensor number = linear_indices(rows_between(indices, 0, batch), batches);
    const Tensor counts = offsets_of(number, count);
    for (int64_t b = 0; b < count; b++) {
      TD_CHECK(op::slice(counts, 0, b + 1, b + 2, 1).item<int64_t>() == (b + 1) * each,
               "Expect the same number of specified elements per batch.");
      all.push_back(offsets_of(rows_between(line, b * each, (b + 1) * each), lines));
    }
    begins = op::reshape(op::cat(all, 0), join(batches, {lines + 1}));
  }
  const Tensor plain =
      op::reshape(rows_between(indices, batch + 1, batch + 2), join(batches, {each}));
  const Tensor values =
      op::reshape(parts.values,
                  join(join(batches, {each}), slice(parts.values.sizes(), 1, parts.values.dim())));
  return make_compressed(layout, begins, plain, values, sizes);
}

// Rows and columns (dimensions `first` and the next) of coordinates exchanged.
Tensor exchanged(const Tensor& coo, int64_t first) {
  const SparseParts& parts = sparse_parts(coo);
  const int64_t k = parts.indices.size(0);
  DimVector sizes(coo.sizes());
  std::swap(sizes[static_cast<size_t>(first)], sizes[static_cast<size_t>(first + 1)]);
  const Tensor indices = op::cat(TensorList{rows_between(parts.indices, 0, first),
                                            rows_between(parts.indices, first + 1, first + 2),
                                            rows_between(parts.indices, first, first + 1),
                                            rows_between(parts.indices, first + 2, k)},
                                 0);
  return make_coo(indices, parts.values, sizes, false);
}

// Elements as blocks: coordinates in the grid of blocks, and their elements as dense dimensions.
Tensor in_blocks(const Tensor& coo, int64_t height, int64_t width) {
  const SparseParts& parts = sparse_parts(coo);
  const int64_t k = parts.indices.size(0), n = parts.indices.size(1);
  DimVector grid(slice(coo.sizes(), 0, k));
  const size_t row = static_cast<size_t>(k - 2);
  TD_CHECK(grid[row] % height == 0 && grid[row + 1] % width == 0,
           "tensor sparse size {} must be divisible by the given blocksize {}",
           IntSpan({grid[row], grid[row + 1]}), IntSpan({height, width}));
  grid[row] /= height;
  grid[row + 1] /= width;
  const Tensor r = op::reshape(rows_between(parts.indices, k - 2, k - 1), {n}),
               c = op::reshape(rows_between(parts.indices, k - 1, k), {n});
  const Tensor br = divided(r, height), bc = divided(c, width);
  const Tensor blocks = op::cat(TensorList{rows_between(parts.indices, 0, k - 2),
                                           op::reshape(br, {1, n}), op::reshape(bc, {1, n})},
                                0);
  const auto [sorted, order] = op::sort_stable(linear_indices(blocks, grid), true, 0, false);
  const auto [found, number, counts] = op::_unique_consecutive(sorted, true, false, std::nullopt);
  const Tensor inside = add(mul(sub(r, mul(br, height)), width), sub(c, mul(bc, width)));
  const int64_t size = height * width;
  const Tensor place = add(mul(number, size), take(inside, order));
  const Tensor values = sum_rows(take(parts.values, order), place, found.numel() * size);
  const DimVector dense = slice(parts.values.sizes(), 1, parts.values.dim());
  DimVector sizes = join(grid, {height, width});
  return make_coo(unravel(found, grid),
                  op::reshape(values, join({found.numel(), height, width}, dense)),
                  join(sizes, dense), true);
}

}  // namespace

Tensor as_compressed(const Tensor& coo, Layout layout, IntSpan block) {
  Tensor t = coalesced(coo);
  if (is_blocked(layout)) t = in_blocks(t, block[0], block[1]);
  if (!is_by_rows(layout)) t = coalesced(exchanged(t, sparse_dim(t) - 2));
  return compress(t, layout, coo.sizes());
}

}  // namespace taeda::sparse
