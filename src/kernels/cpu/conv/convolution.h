// Convolution (cross-correlation) of batches in one to three spatial dimensions, and its two
// adjoints.
//
//   y[n, o, p] = b[o] + sum over c, k of x[n, c, p * stride + k * dilation - padding] * w[o, c, k]
//
// Views: x (n, c, spatial...), w (o, c / groups, kernel...), y (n, o, spatial...). x and y are
// row-major or channels-last, without overlapping elements; w may have any strides. f32 and bf16
// run on oneDNN, f32 also as matrix products of its own (1x1 filters), by Winograd's algorithm
// (3x3) and as sums over taps (few channels a group); every other type as a matrix product over
// unfolded windows.
#pragma once

#include "kernels/launch.h"

namespace taeda::cpu {

struct ConvGeometry {
  IntSpan stride;
  IntSpan padding;
  IntSpan dilation;
  int64_t groups = 1;
};

void convolution_forward(const View& y, const View& x, const View& w, const View& b,
                         const ConvGeometry& g);
// gx: the gradient of x; also a transposed convolution of gy.
void convolution_input_gradient(const View& gx, const View& gy, const View& w,
                                const ConvGeometry& g);
// gw: the gradient of w. That of b is the sum of gy over samples and positions.
void convolution_weight_gradient(const View& gw, const View& gy, const View& x,
                                 const ConvGeometry& g);

// Whether oneDNN computes convolutions of this type fast on this CPU.
bool onednn_convolves(DType dtype);

}  // namespace taeda::cpu

namespace taeda {
TD_KERNEL(convolution_forward);
TD_KERNEL(convolution_input_gradient);
TD_KERNEL(convolution_weight_gradient);
}  // namespace taeda
