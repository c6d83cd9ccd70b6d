// Operators on dense tensors, with the arguments that sparse ones need of them.
#pragma once

#include "taeda/tensor.h"

namespace taeda::sparse {

Tensor zeros(IntSpan sizes, DType dtype, Device device);
Tensor add(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, int64_t factor);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor divided(const Tensor& a, int64_t divisor);  // rounded down
// Rows of `t` by their numbers.
Tensor take(const Tensor& t, const Tensor& rows);
// Sums the rows of `values` that have the same number, [n, ...]; bools by "or".
Tensor sum_rows(const Tensor& values, const Tensor& numbers, int64_t n);
// [n] as [n, 1, ..., 1], so that it broadcasts over rows of `like`.
Tensor as_column(const Tensor& t, const Tensor& like);
Tensor arange(int64_t n, Device device);
Tensor cast(const Tensor& t, DType dtype);
// How many of the numbers are less than 1, 2, ..., n, beginning with 0: [n + 1].
Tensor offsets_of(const Tensor& numbers, int64_t n);
DimVector slice(IntSpan sizes, int64_t first, int64_t last);
DimVector join(IntSpan a, IntSpan b);
int64_t product(IntSpan sizes);

}  // namespace taeda::sparse
