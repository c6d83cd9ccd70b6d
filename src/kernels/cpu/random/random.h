// Filling tensors with random numbers, drawn from a generator in PyTorch's order.
//
// Outputs may have any strides; elements are drawn in the order they lie in memory. Parameters are
// checked by the callers. Each function locks the generator while it draws.
#pragma once

#include "kernels/launch.h"
#include "taeda/generator.h"

namespace taeda::cpu {

// Floating outputs. Uniform in [from, to).
void random_uniform(const View& out, double from, double to, Generator& generator);
void random_normal(const View& out, double mean, double std, Generator& generator);
// Any dtype but complex. out = 1 with probability p.
void random_bernoulli(const View& out, double p, Generator& generator);
// `p` has out's sizes and a floating dtype; RuntimeError when an element is outside [0, 1].
void random_bernoulli_each(const View& out, const View& p, Generator& generator);
// base + an integer in [0, range); range 0 stands for 2^64.
void random_integers(const View& out, uint64_t range, int64_t base, Generator& generator);
// Integers over all that the dtype can count exactly (PyTorch's random_() without arguments).
void random_all_integers(const View& out, Generator& generator);
// How many those are, from 0 on.
uint64_t countable(DType t);
void random_exponential(const View& out, double rate, Generator& generator);
void random_geometric(const View& out, double p, Generator& generator);
void random_cauchy(const View& out, double median, double sigma, Generator& generator);
void random_log_normal(const View& out, double mean, double std, Generator& generator);

// out: a vector. A random permutation of 0 .. n-1.
void random_permutation(const View& out, Generator& generator);

// out: int64 (rows, samples), p: floating (rows, categories), both row-major. RuntimeError for
// weights that are negative, not finite, or all zero.
void multinomial(const View& out, const View& p, bool replacement, Generator& generator);

// Counts. All views row-major, of one floating dtype and size. RuntimeError for a negative rate.
void random_poisson(const View& out, const View& rate, Generator& generator);
void random_binomial(const View& out, const View& count, const View& prob, Generator& generator);

// Gamma numbers of rate 1, at least the smallest normal number. Both views row-major, float or
// double.
void random_gamma(const View& out, const View& shape, Generator& generator);

// out = x * mask / (1 - p), mask = 1 with probability 1 - p. All three dense with the same strides;
// mask is bool.
void dropout(const View& out, const View& mask, const View& x, double p, Generator& generator);
// gx = gy * mask * scale, same layout rules.
void dropout_backward(const View& gx, const View& gy, const View& mask, double scale);

// data[0 .. n-1], uniform in [0, 1), becomes normal: 16 at a time, the first 8 numbers giving radii
// and the last 8 angles (Box and Muller). n is a multiple of 16.
void box_muller(float* data, int64_t n, float mean, float std);
void box_muller(double* data, int64_t n, double mean, double std);

}  // namespace taeda::cpu

namespace taeda {
TD_KERNEL(random_uniform);
TD_KERNEL(random_normal);
TD_KERNEL(random_bernoulli);
TD_KERNEL(random_bernoulli_each);
TD_KERNEL(random_integers);
TD_KERNEL(random_all_integers);
TD_KERNEL(random_exponential);
TD_KERNEL(random_geometric);
TD_KERNEL(random_cauchy);
TD_KERNEL(random_log_normal);
TD_KERNEL(random_permutation);
TD_KERNEL(multinomial);
TD_KERNEL(random_poisson);
TD_KERNEL(random_binomial);
TD_KERNEL(random_gamma);
TD_KERNEL(dropout);
TD_KERNEL(dropout_backward);
}  // namespace taeda
