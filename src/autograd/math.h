// The few tensor operations that autograd itself needs, one door to the operators for this folder.
#pragma once

#include "taeda/tensor.h"

namespace taeda::autograd::math {

Tensor add(const Tensor& a, const Tensor& b);
// a += b where a is owned by no one else.
void accumulate(const Tensor& a, const Tensor& b);
Tensor zeros(IntSpan sizes, DType dtype, Device device);
Tensor ones_like(const Tensor& t);
Tensor clone(const Tensor& t);
// A dense copy with the given strides.
Tensor clone_with_strides(const Tensor& t, IntSpan strides);
Tensor sum_to_size(const Tensor& t, IntSpan sizes);
// To another dtype; a complex tensor to its real part where `dtype` is real.
Tensor cast(const Tensor& t, DType dtype);
Tensor to_device(const Tensor& t, Device device);
Tensor as_strided(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset);
// The gradient of the tensor with the first layout for a gradient of its view with the second one.
Tensor as_strided_backward(const Tensor& gy, IntSpan base_sizes, IntSpan base_strides,
                           int64_t base_offset, IntSpan sizes, IntSpan strides, int64_t offset);
Tensor view_as_real(const Tensor& t);
// What lies in the memory from the first to the last element of a real tensor, in pairs: a vector
// of complex numbers.
Tensor pairs_as_complex(const Tensor& t);
// The memory of a tensor as elements of `dtype`: the same, or one complex and the other real.
Tensor with_elements_of(const Tensor& t, DType dtype);
void copy_(const Tensor& to, const Tensor& from);
Tensor conjugate(const Tensor& t);
// A view of `part`, which lies where a view with the bits `view` (kMathBits) has its elements, as
// that view reads them; `part` reads them as its base, with the bits `base`.
Tensor as_read(const Tensor& part, KeySet view, KeySet base);
Tensor reshape(const Tensor& t, IntSpan sizes);
Tensor transpose(const Tensor& matrix);
// A differentiable view of the whole tensor.
Tensor view(const Tensor& t);
// Any NaN among the elements of a floating or complex tensor.
bool has_nan(const Tensor& t);

// A tensor of its own on the same memory, sharing the version counter; no history, no view
// tracking.
Tensor alias(const Tensor& t);

}  // namespace taeda::autograd::math
