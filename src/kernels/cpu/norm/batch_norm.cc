// batch_norm: y = (x - mean) / sqrt(var + eps) w + b with statistics by channel          (Ioffe and
// Szegedy 2015).
//
// Tensors are [samples, channels, positions], dense, all in the same layout: row-major, or channels
// last, where memory is rows of channels. A gradient needs per channel s1 = sum gy and s2 = sum gy
// (x - mean):
//   gb = s1, gw = s2 rstd, gx = w rstd (gy - s1 / n - (x - mean) rstd^2 s2 / n)
// (without the last two terms where the statistics are constants).
//
// Row-major tensors are worked on by ranges of channels, so that a range's second pass, which
// normalizes or gives gx, finds in the cache what the first one read.
#include "kernels/cpu/norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/cpu/rows/moments.h"
#include "kernels/cpu/rows/row_buffer.h"
#include "kernels/cpu/rows/rows.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 14;    // elements worth a task
constexpr int64_t kMaxPartials = 64;  // partial sums
constexpr int64_t kRow = 1024;        // channels-last rows are grouped up to this length
constexpr int64_t kRun = 8192;        // elements of neighbouring channels that are read in order
constexpr int64_t kChunk = 2048;      // elements of a row that stay in the first-level cache

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

// Calls f(first, last) for ranges of channels as tasks: neighbours together where they are short.
template <class F>
void for_each_range(const Shape& s, const F& f) {
  constexpr int64_t kRanges = 16;
  const int64_t most = (s.channels + kRanges - 1) / kRanges;
  const int64_t length = std::clamp<int64_t>(kRun / s.positions, 1, most);
  parallel_for(0, (s.channels + length - 1) / length,
               std::max<int64_t>(1, kWork / (s.samples * s.positions * length)),
               [&](int64_t i, int64_t end) {
                 for (; i < end; i++) f(i * length, std::min(s.channels, (i + 1) * length));
               });
}
// Part of a row; the next one's start, for what is to be prefetched, or its own where there is
// none.
struct Chunk {
  size_t channel;  // in the range
  int64_t at, n, next = at;
};
// Calls f(chunk) for the rows of a range of channels.
template <class F>
void for_each_chunk(const Shape& s, int64_t first, int64_t last, const F& f) {
  Chunk before{0, 0, 0};
  Looks looks;
  for (int64_t sample = 0; sample < s.samples; sample++)
    for (int64_t c = first; c < last; c++)
      for (int64_t i = 0; i < s.positions; i += kChunk) {
        const Chunk chunk{static_cast<size_t>(c - first),
                          (sample * s.channels + c) * s.positions + i,
                          std::min(kChunk, s.positions - i)};
        before.next = chunk.at;
        if (before.n > 0) f(before);
        before = chunk;
        looks.after(chunk.n);
      }
  if (before.n > 0) f(before);
}
// Chunks are streamed where all of a kernel's memory, some tensors like x, asks for it.
template <class T>
bool stream_chunks(const View& x, int64_t tensors, int64_t positions) {
  return stream_rows<T>(tensors * x.numel * item_size(x.dtype), std::min(positions, kChunk));
}

template <class T>
T scale_of(T weight, T var, double eps) {
  return static_cast<T>(weight / std::sqrt(static_cast<double>(var) + eps));
}

// By the batch's statistics, for rows.
template <class T>
void train_rows(const View& out, const View& mean, const View& var, const View& x,
                const View& weight, const View& bias, double eps) {
  const Shape s = shape_of(x);
  const SmallTensor<T> w(weight, s.channels, T(1)), b(bias, s.channels, T(0));
  const bool streamed = stream_chunks<T>(x, 2, s.positions);
  for_each_range(s, [&](int64_t first, int64_t last) {
    RowBuffer<T> xs(x, kChunk), os(out, kChunk, streamed);
    std::vector<Moments> moments(static_cast<size_t>(last - first));
    for_each_chunk(s, first, last, [&](const Chunk& p) {
      if (streamed) xs.prefetch(p.next, p.n);
      add_chunk(moments[p.channel], xs.read(p.at, p.n), p.n);
    });
    T *const m = mean.as<T>() + first, *const v = var.as<T>() + first;
    for (size_t k = 0; k < moments.size(); k++) {
      m[k] = static_cast<T>(moments[k].mean);
      const double variance = moments[k].m2 / moments[k].count;
      v[k] = static_cast<T>(variance < 0 ? 0 : variance);
    }
    for_each_chunk(s, first, last, [&](const Chunk& p) {
      const size_t k = p.channel;
      const int64_t c = first + static_cast<int64_t>(k);
      const T scale = scale_of(w[c], v[k], eps), *const row = xs.read(p.at, p.n);
      os.write(p.at, p.n, [&](T* y, int64_t i, int64_t n) {
        row_table<T>().centered(y, row + i, m[k], scale, b[c], n);
      });
    });
  });
}

// By given statistics, for rows.
template <class T>
void normalize_rows(const View& out, const View& x, const T* scale, const T* mean, const T* bias) {
  const Shape s = shape_of(x);
  parallel_for(0, s.samples * s.channels, std::max<int64_t>(1, kWork / s.positions),
               [&](int64_t i, int64_t end) {
                 RowBuffer<T> xs(x, s.positions), os(out, s.positions);
                 for (; i < end; i++) {
                   const int64_t c = i % s.channels, at = i * s.positions;
                   row_table<T>().centered(os.open(at), xs.read(at, s.positions), mean[c], scale[c],
                                           bias[c], s.positions);
                   os.close(at, s.positions);
                 }
               });
}

// out = gy * a + x * b + c, with a, b and c by channel; without x: (gy - b) * a + c.
template <class T>
void affine_columns(const View& out, const View& gy, const View* x, const T* a, const T* b,
                    const T* c) {
  const Shape s = shape_of(out);
  const RowTable<T>& t = row_table<T>();
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
void sum_columns(const View& gy, const View& x, const T* mean, double* s1, double* s2) {
  const Shape s = shape_of(gy);
  const RowTable<T>& t = row_table<T>();
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
  for (int64_t c = 0; c < channels; c++) scale[static_cast<size_t>(c)] = scale_of(w[c], v[c], eps);
  if (shape_of(x).channels_last)
    affine_columns<T>(out, x, nullptr, scale.data(), m.data(), b.data());
  else
    normalize_rows<T>(out, x, scale.data(), m.data(), b.data());
}

// What a channel's gradients come from, and its gradients of weight and bias.
template <class T>
struct Slopes {
  T a, b, c;  // gx = a gy + b x + c
  T weight, bias;

  Slopes(T w, T mean, T var, double s1, double s2, double n, bool training, double eps) {
    const double rstd = 1.0 / std::sqrt(static_cast<double>(var) + eps);
    const double slope = training ? -w * rstd * rstd * rstd * s2 / n : 0;
    a = static_cast<T>(w * rstd);
    b = static_cast<T>(slope);
    c = static_cast<T>(training ? -w * rstd * s1 / n - slope * mean : 0);
    weight = static_cast<T>(s2 * rstd);
    bias = static_cast<T>(s1);
  }
};

template <class T>
class Gradient {
 public:
  Gradient(const View& gy, const View& x, const View& weight, const View& mean, const View& var,
           bool training, double eps)
      : gy_(gy),
        x_(x),
        s_(shape_of(x)),
        w_(weight, s_.channels, T(1)),
        m_(mean, s_.channels, T(0)),
        v_(var, s_.channels, T(0)),
        training_(training),
        eps_(eps),
        gw_(static_cast<size_t>(s_.channels)),
        gb_(gw_) {}

  void run(const View& gx, const View& gw, const View& gb) {
    if (s_.channels_last)
      columns(gx);
    else
      for_each_range(s_, [&](int64_t first, int64_t last) { rows(gx, first, last); });
    convert_row(gw.data, gw.dtype, 1, gw_.data(), kDTypeOf<T>, 1, s_.channels);
    convert_row(gb.data, gb.dtype, 1, gb_.data(), kDTypeOf<T>, 1, s_.channels);
  }

 private:
  Slopes<T> slopes(int64_t c, double s1, double s2) {
    const double n = static_cast<double>(s_.samples * s_.positions);
    const Slopes<T> result(w_[c], m_[c], v_[c], s1, s2, n, training_, eps_);
    gw_[static_cast<size_t>(c)] = result.weight;
    gb_[static_cast<size_t>(c)] = result.bias;
    return result;
  }

  void rows(const View& gx, int64_t first, int64_t last) {
    const RowTable<T>& t = row_table<T>();
    const bool streamed = gx.present && stream_chunks<T>(x_, 3, s_.positions);
    RowBuffer<T> gs(gy_, kChunk), xs(x_, kChunk), os(gx, kChunk, streamed);
    const size_t count = static_cast<size_t>(last - first);
    std::vector<double> s1(count), s2(count);
    for_each_chunk(s_, first, last, [&](const Chunk& p) {
      const int64_t c = first + static_cast<int64_t>(p.channel);
      if (streamed) {
        gs.prefetch(p.next, p.n);
        xs.prefetch(p.next, p.n);
      }
      const T *x = xs.read(p.at, p.n), *g = gs.read(p.at, p.n);
      s1[p.channel] += t.sum(g, p.n);
      s2[p.channel] += t.dot_centered(x, m_[c], g, p.n);
    });
    std::vector<Slopes<T>> by_channel;
    for (size_t k = 0; k < count; k++)
      by_channel.push_back(slopes(first + static_cast<int64_t>(k), s1[k], s2[k]));
    if (!gx.present) return;
    for_each_chunk(s_, first, last, [&](const Chunk& p) {
      const T *x = xs.read(p.at, p.n), *g = gs.read(p.at, p.n);
      const Slopes<T>& f = by_channel[p.channel];
      os.write(p.at, p.n, [&](T* o, int64_t i, int64_t n) {
        if (training_)
          t.combine(o, g + i, x + i, f.a, f.b, f.c, n);
        else
          t.affine(o, g + i, f.a, T(0), n);
      });
    });
  }

  void columns(const View& gx) {
    const size_t count = static_cast<size_t>(s_.channels);
    std::vector<double> s1(count), s2(count);
    sum_columns<T>(gy_, x_, m_.data(), s1.data(), s2.data());
    std::vector<T> a(count), b(count), c(count);
    for (size_t i = 0; i < count; i++) {
      const Slopes<T> f = slopes(static_cast<int64_t>(i), s1[i], s2[i]);
      a[i] = f.a, b[i] = f.b, c[i] = f.c;
    }
    if (gx.present)
      affine_columns<T>(gx, gy_, training_ ? &x_ : nullptr, a.data(), b.data(), c.data());
  }

  const View &gy_, &x_;
  Shape s_;
  SmallTensor<T> w_, m_, v_;
  bool training_;
  double eps_;
  std::vector<T> gw_, gb_;
};

}  // namespace

void batch_norm(const View& out, const View& x, const View& weight, const View& bias,
                const View& mean, const View& var, double eps) {
  if (x.numel == 0) return;
  with_wide_floating(x.dtype,
                     [&](auto t) { normalize<decltype(t)>(out, x, weight, bias, mean, var, eps); });
}
void batch_norm_train(const View& out, const View& mean, const View& var, const View& x,
                      const View& weight, const View& bias, double eps) {
  if (x.numel == 0 || shape_of(x).channels_last) {
    DimVector dims{0};
    for (int64_t d = 2; d < x.ndim(); d++) dims.push_back(d);
    mean_and_variance(mean, var, x, dims);
    batch_norm(out, x, weight, bias, mean, var, eps);
    return;
  }
  with_wide_floating(
      x.dtype, [&](auto t) { train_rows<decltype(t)>(out, mean, var, x, weight, bias, eps); });
}
void batch_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, const View& weight, const View& mean, const View& var,
                         bool training, double eps) {
  if (x.numel == 0) return;
  with_wide_floating(x.dtype, [&](auto t) {
    Gradient<decltype(t)>(gy, x, weight, mean, var, training, eps).run(gx, gw, gb);
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
