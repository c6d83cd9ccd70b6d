// The order of dimensions in memory in which an elementwise operator writes a fresh result.
#pragma once

#include "taeda/small_vector.h"

namespace taeda {

// Strides for a result of these sizes, made from operands that are broadcast to them. `operands`
// are their strides, 0 where a dimension is broadcast. Of two dimensions that one is the inner one
// which the first operand says that has both; row-major where none has. This is the order of
// PyTorch's TensorIterator. RuntimeError where strides overflow.
DimVector elementwise_strides(IntSpan sizes, Span<const DimVector> operands);

}  // namespace taeda
