// Sparse tensors: making them, and what they consist of (core/sparse.h).
#pragma once

#include "core/sparse.h"

namespace taeda::sparse {

inline bool is_coo(const Tensor& t) {
  return t.defined() && t.is_sparse() && sparse_parts(t).is_coo();
}
inline bool is_compressed(const Tensor& t) {
  return t.defined() && t.is_sparse() && !sparse_parts(t).is_coo();
}

// Tensors of these parts, which are not checked. They share the parts' memory and have no history.
Tensor make_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced);
Tensor make_compressed(Layout layout, const Tensor& compressed, const Tensor& plain,
                       const Tensor& values, IntSpan sizes);
// Without values: `sparse_dim` dimensions of coordinates, the others dense.
Tensor make_empty_coo(IntSpan sizes, int64_t sparse_dim, DType dtype, Device device);
// The pattern of `like` with other values.
Tensor with_values(const Tensor& like, const Tensor& values);
Tensor with_coalesced(const Tensor& like, bool coalesced);
// Another tensor of the same parts, with the same version counter and no history.
Tensor alias(const Tensor& t);

// Gives `to` the sizes, dtype and parts of `from`.
void take_parts(const Tensor& to, const Tensor& from);
// Writes a result into what an in-place form or out= writes. Values that others know are written
// where they are if the pattern stays.
void write(const Tensor& to, const Tensor& result);

bool is_blocked(Layout layout);
bool is_by_rows(Layout layout);
int64_t nnz(const Tensor& t);
int64_t sparse_dim(const Tensor& t);
int64_t dense_dim(const Tensor& t);
// Dimensions of a compressed tensor in front of its rows and columns.
int64_t batch_dim(const Tensor& t);

// A coordinate tensor with sorted coordinates that differ; `t` itself where it has them.
Tensor coalesced(const Tensor& t);
// The place of each value in the row-major order of `sizes`, [n].
Tensor linear_indices(const Tensor& indices, IntSpan sizes);
// The reverse: coordinates [sizes.size(), n].
Tensor unravel(const Tensor& linear, IntSpan sizes);
// Any layout as a coordinate tensor; and as a dense one.
Tensor as_coo(const Tensor& t);
Tensor as_dense(const Tensor& t);
// A coordinate tensor, compressed: its first two dimensions, or those behind batch dimensions, are
// rows and columns. `block`: of a block, of layouts that have them.
Tensor as_compressed(const Tensor& coo, Layout layout, IntSpan block);

// Sums of a coordinate tensor over dimensions: sparse ones are left out of the coordinates, dense
// ones summed in the values. Dense where no sparse dimension stays. Differentiable.
Tensor sum_over(const Tensor& coo, IntSpan dims, bool keepdim);

}  // namespace taeda::sparse
