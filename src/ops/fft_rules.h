// Strides of the results of Fourier transforms, as PyTorch's plans leave them: the dimensions that
// are transformed lie innermost, those of smaller stride further in, and the others around them in
// the order of the input's strides.
#pragma once

#include "taeda/tensor.h"

namespace taeda::rules {

// Of a complex transform of `self` along `dim`.
DimVector fft_c2c_strides(const Tensor& self, IntSpan dim);
// Of a real one; of a `onesided` result the last of `dim`, which is cut, is the innermost.
DimVector fft_r2c_strides(const Tensor& self, IntSpan dim, bool onesided);
// Of one with a real result, `size` elements along the last of `dim`: what a complex transform of
// the other dimensions leaves is transformed along this one.
DimVector fft_c2r_strides(const Tensor& self, IntSpan dim, int64_t size);

}  // namespace taeda::rules
