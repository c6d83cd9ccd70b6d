// Layouts of views: the order that undoes a permutation, inferred sizes, strides of a reshaped
// view.
#pragma once

#include <optional>

#include "taeda/tensor.h"

namespace taeda::rules {

// The order of dimensions that undoes `permute(dims)`.
DimVector inverse_permutation(IntSpan dims);
// Replaces one -1 of `shape` by what the others leave of `numel`; RuntimeError where they do not
// divide it.
DimVector infer_size(IntSpan shape, int64_t numel);
// Strides that show a tensor's elements in order with the sizes `shape` without copying, if there
// are any. Old dimensions are joined into runs that are contiguous in memory; each run must be cut
// into whole new dimensions.
std::optional<DimVector> view_strides(IntSpan sizes, IntSpan strides, IntSpan shape);
// The value of a one-element tensor as a truth value.
bool is_true(const Tensor& flag);

}  // namespace taeda::rules
