// Discrete Fourier transforms of lines, y_k = sum_j x_j exp(-2 pi i j k / length).
//
// A line whose length has no prime factor above 7 is transformed by passes [Stockham 1966]: with
// length = before * points * rest,
//
//   y[q + before (points p + j)] = exp(-2 pi i p j / (points rest)) *
//                                  sum_k x[q + before (p + rest k)] exp(-2 pi i j k / points)
//
// for p < rest, q < before. A block reads some transforms of `points` elements into shared memory,
// does there the same in turn with radices 2, 3, 4, 5 and 7, and writes them. A line of up to
// kFftPoints elements takes one pass, 2^18 two, 2^27 three; each reads and writes every element
// once. Other lengths are convolutions with a chirp [Bluestein 1970]: its factors are multiplied
// where elements are read and written.
//
// Roots of unity are computed in double; those of a transform in shared memory are in a table
// there. An inverse transform is one with real and imaginary parts exchanged before and after. Real
// lines have imaginary parts of 0 as they are read, and only what is wanted is written.
#pragma once
#include "kernels/cuda/text/butterfly.cuh"
#include "kernels/cuda/text/fft_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

template <class T>
TD_FN Pair<T> chirp(const FftArgs& a, uint64_t k) {
  return root<T>(k * k % (2 * a.n), 2 * a.n);
}

// Element k of a line.
template <class T>
TD_FN Pair<T> fft_element(const FftArgs& a, const char* line, uint64_t k) {
  if (a.from == FftForm::kFilter) {
    const uint64_t back = a.length - k, at = k < a.n ? k : back;
    if (at >= a.n) return {0, 0};
    const Pair<T> z = chirp<T>(a, at);
    return {z.re, -z.im};
  }
  if (k >= a.in_count) return {0, 0};
  Pair<T> z;
  if (a.from == FftForm::kReal) {
    z = {*reinterpret_cast<const T*>(line + static_cast<int64_t>(k) * a.in_stride), 0};
  } else {
    const bool mirrored = a.from == FftForm::kHermitian && 2 * k > a.n;
    const auto at = static_cast<int64_t>(mirrored ? a.n - k : k);
    z = *reinterpret_cast<const Pair<T>*>(line + at * a.in_stride);
    if (mirrored) z.im = -z.im;
    if (a.from == FftForm::kHermitian && (k == 0 || 2 * k == a.n)) z.im = 0;
  }
  if (a.swap_in) z = swapped(z);
  return a.chirp_in ? z * chirp<T>(a, k) : z;
}

// Result k of a line.
template <class T>
TD_FN void set_fft_element(const FftArgs& a, char* line, uint64_t k, Pair<T> z) {
  if (k >= a.out_count) return;
  if (a.swap_out) z = swapped(z);
  if (a.factors) z = z * reinterpret_cast<const Pair<T>*>(a.factors)[k];
  if (a.chirp_out) z = z * chirp<T>(a, k);
  if (a.swap_end) z = swapped(z);
  z = static_cast<T>(a.scale) * z;
  char* const to = line + static_cast<int64_t>(k) * a.out_stride;
  if (a.to == FftForm::kReal)
    *reinterpret_cast<T*>(to) = z.re;
  else
    *reinterpret_cast<Pair<T>*>(to) = z;
}

// A pass in shared memory from x to y, over `count` transforms.
template <int R, class T>
TD_FN void shared_pass(const FftArgs& a, const FftPass& pass, uint32_t count, const Pair<T>* x,
                       Pair<T>* y, const Pair<T>* roots) {
  const uint32_t each = pass.butterflies.value, before = pass.before.value;
  for (uint32_t i = threadIdx.x; i < count * each; i += blockDim.x) {
    const uint32_t transform = divide(i, pass.butterflies), c = i - transform * each;
    const uint32_t p = divide(c, pass.before), q = c - p * before;
    const Pair<T>* const from = x + transform * a.pitch + c;
    Pair<T>* const to = y + transform * a.pitch + before * R * p + q;
    Pair<T> v[R];
#pragma unroll
    for (int k = 0; k < R; k++) v[k] = from[static_cast<uint32_t>(k) * each];
    butterfly(v);
    to[0] = v[0];
#pragma unroll
    for (uint32_t j = 1; j < R; j++) to[j * before] = v[j] * roots[p * j * before];
  }
}

// Where an element of a block's transforms is: in shared memory, and in a line.
struct FftSpot {
  uint32_t transform, k, column;
  uint64_t line;
};
TD_FN FftSpot fft_spot(const FftArgs& a, uint64_t first, uint32_t i, bool across) {
  FftSpot s;
  s.k = across ? divide(i, a.tile) : 0;
  s.transform = across ? i - s.k * a.tile.value : divide(i, a.points);
  if (!across) s.k = i - s.transform * a.points.value;
  const uint64_t t = first + s.transform;
  s.line = a.wide ? t / a.columns.value : divide(static_cast<uint32_t>(t), a.columns);
  s.column = static_cast<uint32_t>(t - s.line * a.columns.value);
  return s;
}

// body(spot) for this thread's elements of the transforms from `first` on.
template <class Body>
TD_FN void for_fft_spots(const FftArgs& a, uint64_t first, uint32_t count, bool across, Body body) {
  for (uint32_t i = threadIdx.x; i < a.tile.value * a.points.value; i += blockDim.x) {
    const FftSpot s = fft_spot(a, first, i, across);
    if (s.transform < count) body(s);
  }
}

template <class T>
TD_FN void store_transforms(const FftArgs& a, uint64_t first, uint32_t count, const Pair<T>* x) {
  const uint64_t rest = a.length / a.before.value;  // points * rest of the formula
  for_fft_spots(a, first, count, a.across_out, [&](const FftSpot& s) {
    Pair<T> z = x[s.transform * a.pitch + s.k];
    const uint64_t p = divide(s.column, a.before), q = s.column - p * a.before.value;
    if (p > 0) z = z * root<T>(p * s.k, rest);
    char* const line = a.out + offsets(a.lines, s.line)[1];
    set_fft_element(a, line, q + a.before.value * (a.points.value * p + s.k), z);
  });
}

template <class T>
TD_FN void fft_kernel(const FftArgs& a) {
  TD_SHARED(Pair<T>, one, kFftPoints<T>);
  TD_SHARED(Pair<T>, other, kFftPoints<T>);
  TD_SHARED(Pair<T>, roots, kFftPoints<T>);
  for (uint32_t k = threadIdx.x; k < a.points.value; k += blockDim.x)
    roots[k] = root<T>(k, a.points.value);
  for (uint64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
    const uint64_t first = tile * a.tile.value, left = a.transforms - first;
    const uint32_t count = left < a.tile.value ? static_cast<uint32_t>(left) : a.tile.value;
    Pair<T>*x = one, *y = other;
    for_fft_spots(a, first, count, a.across_in, [&](const FftSpot& s) {
      const char* const line = a.in + offsets(a.lines, s.line)[0];
      const uint64_t k = s.column + uint64_t{a.columns.value} * s.k;
      x[s.transform * a.pitch + s.k] = fft_element<T>(a, line, k);
    });
    __syncthreads();
#pragma unroll 1
    for (uint32_t i = 0; i < a.passes; i++) {
      const FftPass& pass = a.pass[i];
      if (pass.radix == 2) shared_pass<2>(a, pass, count, x, y, roots);
      if (pass.radix == 3) shared_pass<3>(a, pass, count, x, y, roots);
      if (pass.radix == 4) shared_pass<4>(a, pass, count, x, y, roots);
      if (pass.radix == 5) shared_pass<5>(a, pass, count, x, y, roots);
      if (pass.radix == 7) shared_pass<7>(a, pass, count, x, y, roots);
      Pair<T>* const from = x;
      x = y, y = from;
      __syncthreads();
    }
    store_transforms(a, first, count, x);
    __syncthreads();  // before the next ones are read
  }
}

}  // namespace taeda::device
