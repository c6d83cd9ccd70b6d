// batch_norm: y = (x - mean) / sqrt(var + eps) w + b with statistics by channel          (Ioffe and
// Szegedy 2015).
//
// Tensors are [samples, channels, positions], dense, all in the same layout: row-major, or channels
// last, where memory is rows of channels. A gradient needs per channel s1 = sum gy and s2 = sum gy
// (x - mean):
//   gb = s1, gw = s2 rstd, gx = w rstd (gy - s1 / n - (x - mean) rstd^2 s2 / n)
// (without the last two terms where the statistics are constants).
#include "kernels/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/row_buffer.h"
#include "kernels/cpu/rows.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 14;    // elements worth a task
constexpr int64_t kMaxPartials = 64;  // partial sums
constexpr int64_t kRow = 1024;        // channels-last rows are grouped up to this length

struct Shape {
  int64_t samples, channels, positions;
  bool channels_last;
};
Shape shape_of(const View& x) {
  Shape s{x.sizes[0], x.sizes[1], 1, false};
  s.positions = x.numel / (s.samples * s.channels);
  s.channels_last = s.positions == 1 || x.strides[1] == 1;
  return s;
}

// out = gy * a + x * b + c, with a, b and c by channel; without x: (gy - b) * a + c.
template <class T>
void affine(const View& out, const View& gy, const View* x, const T* a, const T* b, const T* c) {
  const Shape s = shape_of(out);
  const RowTable<T>& t = row_table<T>();
  if (!s.channels_last) {
    parallel_for(
        0, s.samples * s.channels, std::max<int64_t>(1, kWork / s.positions),
        [&](int64_t begin, int64_t end) {
          RowBuffer<T> gs(gy, s.positions), xs(x ? *x : gy, s.positions), os(out, s.positions);
          for (int64_t i = begin; i < end; i++) {
            const int64_t k = i % s.channels, at = i * s.positions;
            const T* g = gs.read(at, s.positions);
            if (x)
              t.combine(os.open(at), g, xs.read(at, s.positions), a[k], b[k], c[k], s.positions);
            else
              t.centered(os.open(at), g, b[k], a[k], c[k], s.positions);
            os.close(at, s.positions);
          }
        });
    return;
  }
  // Several rows at once, against copies of the factors.
  const int64_t rows = s.samples * s.positions,
                group = std::clamp<int64_t>(kRow / s.channels, 1, rows);
  const int64_t n = group * s.channels;
  std::vector<T> ra(static_cast<size_t>(n)), rb(ra), rc(ra);
  for (int64_t i = 0; i < n; i++) {
    const size_t k = static_cast<size_t>(i);
    ra[k] = a[i % s.channels];
    rb[k] = b[i % s.channels];
    rc[k] = c[i % s.channels];
  }
  parallel_for(0, (rows + group - 1) / group, std::max<int64_t>(1, kWork / n),
               [&](int64_t begin, int64_t end) {
                 RowBuffer<T> gs(gy, n), xs(x ? *x : gy, n), os(out, n);
                 std::vector<T> sum(static_cast<size_t>(n));
                 for (int64_t i = begin; i < end; i++) {
                   const int64_t at = i * n, m = std::min(n, rows * s.channels - at);
                   const T* g = gs.read(at, m);
                   if (x) {
                     t.affine_rows(sum.data(), xs.read(at, m), T(0), T(1), rb.data(), rc.data(), m);
                     t.affine_rows(os.open(at), g, T(0), T(1), ra.data(), sum.data(), m);
                   } else {
                     t.subtract(sum.data(), g, rb.data(), m);
                     t.affine_rows(os.open(at), sum.data(), T(0), T(1), ra.data(), rc.data(), m);
                   }
                   os.close(at, m);
                 }
               });
}

// s1 and s2 by channel, in double.
template <class T>
void gradient_sums(const View& gy, const View& x, const T* mean, double* s1, double* s2) {
  const Shape s = shape_of(gy);
  const RowTable<T>& t = row_table<T>();
  if (!s.channels_last) {
    parallel_for(0, s.channels, std::max<int64_t>(1, kWork / (s.samples * s.positions)),
                 [&](int64_t begin, int64_t end) {
                   RowBuffer<T> gs(gy, s.positions), xs(x, s.positions);
                   for (int64_t c = begin; c < end; c++) {
                     s1[c] = s2[c] = 0;
                     for (int64_t i = 0; i < s.samples; i++) {
                       const int64_t at = (i * s.channels + c) * s.positions;
                       const T* g = gs.read(at, s.positions);
                       s1[c] += t.sum(g, s.positions);
                       s2[c] += t.dot_centered(xs.read(at, s.positions), mean[c], g, s.positions);
                     }
                   }
                 });
    return;
  }
  constexpr int64_t kBlock = 16;  // rows added up in T before they go into double
  const int64_t rows = s.samples * s.positions, blocks = (rows + kBlock - 1) / kBlock;
  const int64_t parts =
      std::clamp<int64_t>(rows * s.channels / kWork, 1, std::min(kMaxPartials, blocks));
  const int64_t length = (blocks + parts - 1) / parts;
  std::vector<double> sums(static_cast<size_t>(2 * parts * s.channels));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    RowBuffer<T> gs(gy, kBlock * s.channels), xs(x, kBlock * s.channels);
    std::vector<T> first(static_cast<size_t>(s.channels)), second(first);
    for (int64_t p = begin; p < end; p++) {
      double* part = sums.data() + 2 * p * s.channels;
      for (int64_t k = p * length; k < std::min(blocks, (p + 1) * length); k++) {
        const int64_t m = std::min(kBlock, rows - k * kBlock), at = k * kBlock * s.channels;
        t.dots_columns(first.data(), second.data(), gs.read(at, m * s.channels),
                       xs.read(at, m * s.channels), mean, s.channels, m, s.channels);
        for (int64_t c = 0; c < s.channels; c++) {
          part[c] += first[static_cast<size_t>(c)];
          part[s.channels + c] += second[static_cast<size_t>(c)];
        }
      }
    }
  });
  std::fill_n(s1, s.channels, 0.0);
  std::fill_n(s2, s.channels, 0.0);
  for (int64_t p = 0; p < parts; p++) {
    const double* part = sums.data() + 2 * p * s.channels;
    for (int64_t c = 0; c < s.channels; c++) {
      s1[c] += part[c];
      s2[c] += part[s.channels + c];
    }
  }
}

template <class T>
void normalize(const View& out, const View& x, const View& weight, const View& bias,
               const View& mean, const View& var, double eps) {
  const int64_t channels = x.sizes[1];
  const SmallTensor<T> w(weight, channels, T(1)), b(bias, channels, T(0)), m(mean, channels, T(0)),
      v(var, channels, T(0));
  std::vector<T> scale(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; c++) {
    scale[static_cast<size_t>(c)] =
        static_cast<T>(w[c] / std::sqrt(static_cast<double>(v[c]) + eps));
  }
  affine<T>(out, x, nullptr, scale.data(), m.data(), b.data());
}

template <class T>
void gradient(const View& gx, const View& gw, const View& gb, const View& gy, const View& x,
              const View& weight, const View& mean, const View& var, bool training, double eps) {
  const int64_t channels = x.sizes[1];
  const size_t count = static_cast<size_t>(channels);
  const int64_t count_per_channel = x.numel / channels;
  const double n = static_cast<double>(count_per_channel);
  const SmallTensor<T> w(weight, channels, T(1)), m(mean, channels, T(0)), v(var, channels, T(0));
  std::vector<double> s1(count), s2(count);
  gradient_sums<T>(gy, x, m.data(), s1.data(), s2.data());
  std::vector<T> a(count), b(count), c(count), grad_w(count), grad_b(count);
  for (size_t i = 0; i < count; i++) {
    const int64_t k = static_cast<int64_t>(i);
    const double rstd = 1.0 / std::sqrt(static_cast<double>(v[k]) + eps);
    const double slope = training ? -w[k] * rstd * rstd * rstd * s2[i] / n : 0;
    a[i] = static_cast<T>(w[k] * rstd);
    b[i] = static_cast<T>(slope);
    c[i] = static_cast<T>(training ? -w[k] * rstd * s1[i] / n - slope * m[k] : 0);
    grad_w[i] = static_cast<T>(s2[i] * rstd);
    grad_b[i] = static_cast<T>(s1[i]);
  }
  if (gx.present) affine<T>(gx, gy, training ? &x : nullptr, a.data(), b.data(), c.data());
  convert_row(gw.data, gw.dtype, 1, grad_w.data(), kDTypeOf<T>, 1, channels);
  convert_row(gb.data, gb.dtype, 1, grad_b.data(), kDTypeOf<T>, 1, channels);
}

}  // namespace

void batch_norm(const View& out, const View& x, const View& weight, const View& bias,
                const View& mean, const View& var, double eps) {
  if (x.numel == 0) return;
  with_wide_floating(x.dtype,
                     [&](auto t) { normalize<decltype(t)>(out, x, weight, bias, mean, var, eps); });
}
void batch_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, const View& weight, const View& mean, const View& var,
                         bool training, double eps) {
  if (x.numel == 0) return;
  with_wide_floating(x.dtype, [&](auto t) {
    gradient<decltype(t)>(gx, gw, gb, gy, x, weight, mean, var, training, eps);
  });
}

void move_running(const View& self, const View& value, double momentum, double scale) {
  const SmallTensor<double> target(value, value.numel, 0.0);
  std::vector<double> running(static_cast<size_t>(self.numel));
  convert_row(running.data(), DType::kFloat64, 1, self.data, self.dtype, self.strides[0],
              self.numel);
  for (size_t i = 0; i < running.size(); i++) {
    running[i] = (1 - momentum) * running[i] + momentum * scale * target[static_cast<int64_t>(i)];
  }
  convert_row(self.data, self.dtype, self.strides[0], running.data(), DType::kFloat64, 1,
              self.numel);
}

}  // namespace taeda::cpu
