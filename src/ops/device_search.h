// Operators on sets and counts for devices, made of others that have kernels there: what the bodies
// in search.cc and index.cc compute element by element on the CPU. Those whose result's size
// depends on elements wait for the device once.
#pragma once

#include <tuple>

#include "taeda/tensor.h"

namespace taeda::on_device {

// The runs of equal elements of a vector, or rows of a matrix, that `order` has sorted, if defined:
// which element each begins with, how long it is, and of each element the number of its run.
struct Runs {
  Tensor starts, counts, inverse;
};
Runs runs_of(const Tensor& sorted, const Tensor& order, bool inverse, bool counts);

// The indices of the first `size` elements that are not 0, a row each; then rows of `fill_value`.
Tensor nonzero_static(const Tensor& x, int64_t size, int64_t fill_value);

// How often each of the integers of x, int64 and not negative, occurs, or the sum of the weights.
Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength);

// Index i repeats[i] times; int64. Without an output size the device is waited for.
Tensor repeated_indices(const Tensor& repeats, std::optional<int64_t> output_size);

}  // namespace taeda::on_device
