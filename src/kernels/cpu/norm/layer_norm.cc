// layer_norm and group_norm with their gradients.
//
//   y = (x - mean) rstd w + b, rstd = 1 / sqrt(var + eps), statistics over each row      (Ba, Kiros
//   and Hinton 2016) gx = rstd (g - mean(g) - xhat mean(g xhat)), g = gy w, xhat = (x - mean) rstd
//   gw = sum gy xhat, gb = sum gy over rows
//
// Tensors arrive contiguous. group_norm is the same over rows of (channels of a group) x
// (positions), with w and b by channel (Wu and He 2018).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/rows/moments.h"
#include "kernels/cpu/rows/row_buffer.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/product.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 14;    // elements worth a task
constexpr int64_t kMaxPartials = 32;  // partial sums of weight gradients
constexpr int64_t kChunk = 2048;      // elements whose sums are taken in T; slices are multiples

template <class T>
struct Statistics {
  T mean, rstd;
};
template <class T>
Statistics<T> statistics(const T* x, int64_t n, double eps) {
  Moments s;
  in_slices(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kChunk) add_chunk(s, x + i, std::min(kChunk, end - i));
  });
  const double variance = s.m2 / s.count;  // NaN stays NaN below
  return {static_cast<T>(s.mean),
          static_cast<T>(1.0 / std::sqrt((variance < 0 ? 0 : variance) + eps))};
}

template <class T>
void set(const View& v, int64_t i, T value) {
  convert_row(at(v, i), v.dtype, 1, &value, kDTypeOf<T>, 1, 1);
}
template <class T>
T get(const View& v, int64_t i) {
  T value;
  convert_row(&value, kDTypeOf<T>, 1, at(v, i), v.dtype, 1, 1);
  return value;
}

// Runs f(part, begin, end) over `rows` rows cut into a number of parts that depends on sizes only.
int64_t part_count(int64_t rows, int64_t n) {
  return std::clamp<int64_t>(rows * n / kWork, 1,
                             std::min(kMaxPartials, std::max<int64_t>(1, rows)));
}
template <class F>
void over_parts(int64_t rows, int64_t parts, const F& f) {
  const int64_t length = (rows + parts - 1) / parts;
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++)
      f(p, std::min(rows, p * length), std::min(rows, (p + 1) * length));
  });
}

template <class T>
void layer_norm_forward(const View& out, const View& mean, const View& rstd, const View& x,
                        const View& weight, const View& bias, int64_t n, double eps) {
  const int64_t rows = x.numel / n;
  const SmallTensor<T> w(weight, n, T(1)), b(bias, n, T(0));
  const bool streamed = stream_rows<T>(2 * x.numel * item_size(out.dtype), n);
  parallel_for(0, rows, std::max<int64_t>(1, kWork / n), [&](int64_t begin, int64_t end) {
    RowBuffer<T> xs(x, n), ys(out, n, streamed);
    for (int64_t i = begin; i < end; i++) {
      const T* row = xs.read(i * n, n);
      const Statistics<T> s = statistics(row, n, eps);
      ys.write(i * n, n, [&](T* y, int64_t k, int64_t m) {
        if (streamed) xs.prefetch((i + 1) * n + k, m);
        row_table<T>().affine_rows(y, row + k, s.mean, s.rstd, w.data() + k, b.data() + k, m);
      });
      set(mean, i, s.mean);
      set(rstd, i, s.rstd);
    }
  });
}

template <class T>
void store_sums(const View& out, const T* parts, int64_t count, int64_t stride, int64_t n) {
  const std::unique_ptr<T[]> total = zeros<T>(n);
  for (int64_t p = 0; p < count; p++) row_table<T>().add(total.get(), parts + p * stride, n);
  convert_row(out.data, out.dtype, 1, total.get(), kDTypeOf<T>, 1, n);
}

template <class T>
void layer_norm_gradient(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, const View& mean, const View& rstd, const View& weight,
                         int64_t n) {
  const int64_t rows = x.numel / n, parts = part_count(rows, n);
  const SmallTensor<T> w(weight, n, T(1));
  const std::unique_ptr<T[]> sums = zeros<T>(2 * parts * n);
  const RowTable<T>& t = row_table<T>();
  const bool streamed = stream_rows<T>(3 * x.numel * item_size(gx.dtype), n);
  over_parts(rows, parts, [&](int64_t p, int64_t begin, int64_t end) {
    RowBuffer<T> gs(gy, n), xs(x, n), os(gx, n, streamed);
    T* const part_w = sums.get() + 2 * p * n;
    T* const part_b = part_w + n;
    for (int64_t i = begin; i < end; i++) {
      const T* grad = gs.read(i * n, n);
      const T* row = xs.read(i * n, n);
      const T m = get<T>(mean, i), r = get<T>(rstd, i), count = static_cast<T>(n);
      double first = 0, second = 0;
      Looks looks;
      for (int64_t k = 0; k < n; k += kChunk) {
        t.norm_sums(grad + k, row + k, m, r, w.data() + k, std::min(kChunk, n - k), part_w + k,
                    part_b + k, &first, &second);
        looks.after(kChunk);
      }
      const T b = -r * r * static_cast<T>(second) / count,
              c = -r * static_cast<T>(first) / count - m * b;
      os.write(i * n, n, [&](T* o, int64_t k, int64_t size) {
        t.combine_rows(o, grad + k, w.data() + k, row + k, r, b, c, size);
      });
    }
  });
  store_sums(gw, sums.get(), parts, 2 * n, n);
  store_sums(gb, sums.get() + n, parts, 2 * n, n);
}

template <class T>
void group_norm_forward(const View& out, const View& mean, const View& rstd, const View& x,
                        const View& weight, const View& bias, int64_t groups, double eps) {
  const int64_t samples = x.sizes[0], channels = x.sizes[1], per_group = channels / groups;
  const int64_t positions = x.numel / (samples * channels), n = per_group * positions;
  const SmallTensor<T> w(weight, channels, T(1)), b(bias, channels, T(0));
  parallel_for(0, samples * groups, std::max<int64_t>(1, kWork / n),
               [&](int64_t begin, int64_t end) {
                 RowBuffer<T> xs(x, n), ys(out, n);
                 for (int64_t i = begin; i < end; i++) {
                   const T* row = xs.read(i * n, n);
                   const Statistics<T> s = statistics(row, n, eps);
                   T* y = ys.open(i * n);
                   Looks looks;
                   for (int64_t k = 0; k < per_group; k++) {
                     const int64_t c = i % groups * per_group + k;
                     row_table<T>().centered(y + k * positions, row + k * positions, s.mean,
                                             s.rstd * w[c], b[c], positions);
                     looks.after(positions);
                   }
                   ys.close(i * n, n);
                   set(mean, i, s.mean);
                   set(rstd, i, s.rstd);
                 }
               });
}

template <class T>
void group_norm_gradient(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, const View& mean, const View& rstd, const View& weight,
                         int64_t groups) {
  const int64_t samples = x.sizes[0], channels = x.sizes[1], per_group = channels / groups;
  const int64_t positions = x.numel / (samples * channels), n = per_group * positions;
  const SmallTensor<T> w(weight, channels, T(1));
  const int64_t parts = part_count(samples, channels * positions);
  const std::unique_ptr<T[]> sums = zeros<T>(2 * parts * channels);
  const RowTable<T>& t = row_table<T>();
  over_parts(samples, parts, [&](int64_t p, int64_t begin, int64_t end) {
    RowBuffer<T> gs(gy, n), xs(x, n), os(gx, n);
    T* const part_w = sums.get() + 2 * p * channels;
    T* const part_b = part_w + channels;
    for (int64_t i = begin * groups; i < end * groups; i++) {
      const T* grad = gs.read(i * n, n);
      const T* row = xs.read(i * n, n);
      const T m = get<T>(mean, i), r = get<T>(rstd, i), count = static_cast<T>(n);
      T first = 0, second = 0;
      Looks looks;
      for (int64_t k = 0; k < per_group; k++) {
        const int64_t c = i % groups * per_group + k;
        const T sum = t.sum(grad + k * positions, positions);
        const T dot = t.dot_centered(row + k * positions, m, grad + k * positions, positions);
        part_w[c] += dot * r;
        part_b[c] += sum;
        first += sum * w[c];
        second += dot * w[c];
        looks.after(positions);
      }
      const T b = -r * r * r * second / count;
      T* o = os.open(i * n);
      for (int64_t k = 0; k < per_group; k++) {
        const int64_t c = i % groups * per_group + k;
        t.combine(o + k * positions, grad + k * positions, row + k * positions, r * w[c], b,
                  -r * first / count - m * b, positions);
        looks.after(positions);
      }
      os.close(i * n, n);
    }
  });
  store_sums(gw, sums.get(), parts, 2 * channels, channels);
  store_sums(gb, sums.get() + channels, parts, 2 * channels, channels);
}

void zero(const View& v) {
  if (v.numel) std::memset(v.data, 0, static_cast<size_t>(v.numel * item_size(v.dtype)));
}

}  // namespace

void layer_norm(const View& out, const View& mean, const View& rstd, const View& input,
                IntSpan normalized_shape, const View& weight, const View& bias, double eps) {
  const int64_t n = kernels::product(normalized_shape);
  if (input.numel == 0) return zero(mean), zero(rstd);
  with_wide_floating(input.dtype, [&](auto t) {
    layer_norm_forward<decltype(t)>(out, mean, rstd, input, weight, bias, n, eps);
  });
}
void layer_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& input, IntSpan normalized_shape, const View& mean,
                         const View& rstd, const View& weight, double) {
  if (input.numel == 0) return zero(gw), zero(gb);
  with_wide_floating(input.dtype, [&](auto t) {
    layer_norm_gradient<decltype(t)>(gx, gw, gb, gy, input, mean, rstd, weight,
                                     kernels::product(normalized_shape));
  });
}
void group_norm(const View& out, const View& mean, const View& rstd, const View& input,
                int64_t num_groups, const View& weight, const View& bias, double eps) {
  if (input.numel == 0) return zero(mean), zero(rstd);
  with_wide_floating(input.dtype, [&](auto t) {
    group_norm_forward<decltype(t)>(out, mean, rstd, input, weight, bias, num_groups, eps);
  });
}
void group_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& input, int64_t num_groups, const View& mean, const View& rstd,
                         const View& weight, double) {
  if (input.numel == 0) return zero(gw), zero(gb);
  with_wide_floating(input.dtype, [&](auto t) {
    group_norm_gradient<decltype(t)>(gx, gw, gb, gy, input, mean, rstd, weight, num_groups);
  });
}

}  // namespace taeda::cpu
