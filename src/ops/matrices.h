// Batches of matrices as LAPACK's routines take and leave them.
#pragma once

#include "taeda/tensor.h"

namespace taeda {

// `t` itself where its matrices follow each other without gaps, each row- or column-major; else a
// row-major copy.
Tensor matrix_input(const Tensor& t);

// An uninitialised tensor whose last two dimensions are column-major; row-major where there are
// fewer than two.
Tensor empty_column_major(IntSpan sizes, DType dtype, Device device);

}  // namespace taeda
