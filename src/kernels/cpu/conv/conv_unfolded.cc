// Convolutions of the types that oneDNN does not take, by im2col: the windows of a sample become a
// matrix (channels * kernel) x (positions), and a matrix product does the rest. Samples are dealt
// out to threads.
#include <algorithm>
#include <complex>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/sliced.h"
#include "core/with_dtype.h"
#include "kernels/cpu/conv/conv_backends.h"
#include "kernels/cpu/conv/conv_bands.h"
#include "kernels/cpu/conv/window_matrix.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/simd/scratch.h"
#include "taeda/error.h"

namespace taeda::cpu {

namespace {

// One group of one sample.
WindowMatrix windows_of(const ConvProblem& p) {
  WindowMatrix s;
  s.channels = p.w.sizes[1];
  s.channel_stride = p.x.strides[1];
  for (size_t i = 0, skip = 3 - p.spatial(); i < 3; i++) {
    const bool real = i >= skip;
    const size_t d = real ? i - skip : 0;
    s.in[i] = real ? p.x.sizes[d + 2] : 1;
    s.kernel[i] = real ? p.w.sizes[d + 2] : 1;
    s.out[i] = real ? p.y.sizes[d + 2] : 1;
    s.stride[i] = real ? p.stride[d] : 1;
    s.padding[i] = real ? p.padding[d] : 0;
    s.dilation[i] = real ? p.dilation[d] : 1;
    s.in_strides[i] = real ? p.x.strides[d + 2] : 0;
  }
  return s;
}

// Row-major copies of the weights' group matrices (o / groups) x (c * kernel).
template <class T>
Scratch<T> pack_weights(const ConvArray& w) {
  Scratch<T> packed(w.numel());
  const T* data = reinterpret_cast<const T*>(w.data);
  DimVector index(w.sizes.size());
  for (int64_t i = 0; i < w.numel(); i++) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); d++) at += index[d] * w.strides[d];
    packed[i] = data[at];
    for (size_t d = index.size(); d-- > 0 && ++index[d] == w.sizes[d];) index[d] = 0;
  }
  return packed;
}

// (o / groups) x (positions) of one sample's group of y. Its positions must be evenly spaced.
template <class T>
Matrix output_matrix(const ConvArray& y, int64_t sample, int64_t channel, int64_t channels,
                     int64_t positions) {
  T* data = reinterpret_cast<T*>(y.data) + sample * y.strides[0] + channel * y.strides[1];
  return {data, channels, positions, y.strides[1], y.strides[y.strides.size() - 1]};
}

// x: one sample of a, row-major or channels-last, of which `a` may be a band.
template <class T>
void clear_sample(const ConvArray& a, T* x) {
  const int64_t channels = a.sizes[1], elements = a.numel() / a.sizes[0];
  if (a.strides[1] == 1) {
    sliced_fill(x, elements, T(0));
    return;
  }
  for (int64_t c = 0; c < channels; c++)
    sliced_fill(x + c * a.strides[1], elements / channels, T(0));
}

}  // namespace

void unfolded_conv_forward(const ConvProblem& p, const View& bias) {
  const WindowMatrix s = windows_of(p);
  const int64_t out = p.w.sizes[0] / p.groups, rows = s.rows(), positions = s.positions();
  with_dtype<WideNumbers>(p.x.dtype, "convolution", [&]<class T>(T) {
    const Scratch<T> weights = pack_weights<T>(p.w);
    parallel_for(0, p.y.sizes[0] * p.groups, 1, [&](int64_t begin, int64_t end) {
      const Scratch<T> matrix(rows * positions);
      for (int64_t i = begin; i < end; i++) {
        const int64_t sample = i / p.groups, group = i % p.groups;
        const T* x = reinterpret_cast<const T*>(p.x.data) + sample * p.x.strides[0] +
                     group * s.channels * s.channel_stride;
        s.unfold(x, matrix.data());
        Matrix d;
        if (bias.present)
          d = {bias.as<T>() + group * out * bias.strides[0], out, positions, bias.strides[0], 0};
        gemm(p.x.dtype, output_matrix<T>(p.y, sample, group * out, out, positions),
             {weights.data() + group * out * rows, out, rows, rows, 1},
             {matrix.data(), rows, positions, positions, 1}, 1, bias.present ? 1 : 0, d);
      }
    });
  });
}

void unfolded_conv_input_gradient(const ConvProblem& p) {
  const WindowMatrix s = windows_of(p);
  const int64_t out = p.w.sizes[0] / p.groups, rows = s.rows(), positions = s.positions();
  with_dtype<WideNumbers>(p.x.dtype, "convolution", [&]<class T>(T) {
    const Scratch<T> weights = pack_weights<T>(p.w);
    parallel_for(0, p.x.sizes[0], 1, [&](int64_t begin, int64_t end) {
      const Scratch<T> matrix(rows * positions);
      for (int64_t i = begin; i < end; i++) {
        T* x = reinterpret_cast<T*>(p.x.data) + i * p.x.strides[0];
        clear_sample(p.x, x);
        for (int64_t group = 0; group < p.groups; group++) {
          gemm(p.x.dtype, {matrix.data(), rows, positions, positions, 1},
               transposed(Matrix{weights.data() + group * out * rows, out, rows, rows, 1}),
               output_matrix<T>(p.y, i, group * out, out, positions));
          s.fold(matrix.data(), x + group * s.channels * s.channel_stride);
        }
      }
    });
  });
}

void unfolded_conv_weight_gradient(const ConvProblem& p) {
  const std::vector<ConvProblem> bands = bands_of_y(p);
  const WindowMatrix largest = windows_of(bands[0]);
  const int64_t out = p.w.sizes[0] / p.groups, rows = largest.rows(), n = p.y.sizes[0];
  with_dtype<WideNumbers>(p.x.dtype, "convolution", [&]<class T>(T) {
    // One group a task, its samples in order: the same sums whatever the number of threads.
    parallel_for(0, p.groups, 1, [&](int64_t begin, int64_t end) {
      const Scratch<T> matrix(n == 0 ? 0 : rows * largest.positions());
      for (int64_t group = begin; group < end; group++) {
        T* gw = reinterpret_cast<T*>(p.w.data) + group * out * rows;
        std::fill_n(gw, out * rows, T(0));
        for (int64_t i = 0; i < n; i++) {
          for (const ConvProblem& band : bands) {
            const WindowMatrix s = windows_of(band);
            const int64_t positions = s.positions();
            check_interrupt();
            const T* x = reinterpret_cast<const T*>(band.x.data) + i * p.x.strides[0] +
                         group * s.channels * s.channel_stride;
            s.unfold(x, matrix.data());
            parallel_gemm(p.x.dtype, {gw, out, rows, rows, 1},
                          output_matrix<T>(band.y, i, group * out, out, positions),
                          transposed(Matrix{matrix.data(), rows, positions, positions, 1}), 1, 1);
          }
        }
      }
    });
  });
}

}  // namespace taeda::cpu
