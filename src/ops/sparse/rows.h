// Sparse matrices by rows: what products work on.
#pragma once

#include "taeda/tensor.h"

namespace taeda::sparse {

struct Rows {
  Tensor begins;   // where each row begins in the others, [n + 1]
  Tensor columns;  // int64, as all of these
  Tensor values;
  int64_t width;  // of the matrix
};

// Of a matrix of any sparse layout without dense dimensions.
Rows rows_of(const Tensor& matrix);
// The number of the row that each value is in.
Tensor row_numbers(const Rows& rows);
// The product with a dense matrix [width, p].
Tensor times(const Rows& rows, const Tensor& dense);
// The elements of the product left [n, p] x right [p, m] where the matrix has values, in their
// order.
Tensor sampled(const Rows& rows, const Tensor& left, const Tensor& right);
// The product of two, as a coordinate tensor.
Tensor times(const Rows& left, const Rows& right);
// The product of two matrices, one of them sparse. All of these are differentiable in values.
Tensor product_of(const Tensor& a, const Tensor& b);

}  // namespace taeda::sparse
