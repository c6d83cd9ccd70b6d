// The ways in which a convolution is computed; convolution.cc chooses.
#pragma once

#include "kernels/cpu/conv/conv_array.h"

namespace taeda::cpu {

// oneDNN: p.x, p.w, p.y are f32 or bf16 and not empty. False, with nothing done, where it has only
// its slow reference implementation.
bool onednn_conv_forward(const ConvProblem& p, const View& bias);
bool onednn_conv_input_gradient(const ConvProblem& p);
// `out` takes the place of p.w, whose type alone is looked at; it may be f32 beside bf16.
bool onednn_conv_weight_gradient(const ConvProblem& p, const ConvArray& out);

// Winograd's algorithm for f32 images, 3x3 filters and stride 1, where use_winograd says so; all
// arrays are row-major.
bool use_winograd(const ConvProblem& p, bool weight_gradient);
void winograd_conv_forward(const ConvProblem& p, const View& bias);
void winograd_conv_input_gradient(const ConvProblem& p);
void winograd_conv_weight_gradient(const ConvProblem& p);

// Matrix products for 1x1 filters in f32, where use_pointwise says so.
bool use_pointwise(const ConvProblem& p, bool weight_gradient);
void pointwise_conv_forward(const ConvProblem& p, const View& bias);
void pointwise_conv_input_gradient(const ConvProblem& p);
void pointwise_conv_weight_gradient(const ConvProblem& p);

// Sums over taps for f32 images with few channels a group, where use_direct says so.
bool use_direct(const ConvProblem& p);
bool use_direct_gradient(const ConvProblem& p, bool of_weight);
void direct_conv_forward(const ConvProblem& p, const View& bias);
void direct_conv_input_gradient(const ConvProblem& p);
void direct_conv_weight_gradient(const ConvProblem& p);

// Windows unfolded into a matrix, then a matrix product; any numeric type, any sizes.
void unfolded_conv_forward(const ConvProblem& p, const View& bias);
void unfolded_conv_input_gradient(const ConvProblem& p);
void unfolded_conv_weight_gradient(const ConvProblem& p);

}  // namespace taeda::cpu
