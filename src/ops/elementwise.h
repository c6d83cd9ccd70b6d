// How the results of elementwise operators lie in memory, also of those that are no functors.
#pragma once

#include "taeda/tensor.h"

namespace taeda {

// Strides of a fresh result of `sizes`, computed from at most 6 inputs that are broadcast to them:
// those of inputs that are all laid out alike, else the order of core/element_order.h. On the CPU
// PyTorch first converts the inputs, but for masks, to one dtype, by which expanded ones become
// dense.
struct Converted {
  DType dtype;
  bool masks = false;  // bools are masks
};
DimVector elementwise_strides(IntSpan sizes, Span<const Tensor* const> inputs, Converted to);

// `t`, of the sizes of `result`, without gaps in the memory order of `result`: itself or a copy.
Tensor ordered_input(const Tensor& t, const Tensor& result);

namespace rules {

// The same of inputs that have the result's sizes and one dtype.
DimVector elementwise_strides(const Tensor& a);
DimVector elementwise_strides(const Tensor& a, const Tensor& b);

}  // namespace rules
}  // namespace taeda
