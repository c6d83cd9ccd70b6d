// softmax, log_softmax along one dimension, and their gradients; logsumexp.
//
//   softmax(x)_i = exp(x_i - max x) / sum_j exp(x_j - max x)         gx = y (gy - sum(gy y))
//   log_softmax(x)_i = x_i - max x - log sum_j exp(x_j - max x)      gx = gy - exp(y) sum(gy)
//   logsumexp(x) = max x + log sum_j exp(x_j - max x)
//
// Tensors arrive contiguous, seen as [outer, n, inner]. With inner = 1 a row is worked on at once;
// otherwise kTile neighbouring columns are, so that memory is read along rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/rows/row_buffer.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/optional.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 14;  // elements worth a task
constexpr int64_t kTile = 256;      // columns worked on at once

struct Shape {
  int64_t outer = 1, n = 1, inner = 1;
};
Shape shape_of(const View& x, int64_t dim) {
  Shape s;
  for (int64_t d = 0; d < x.ndim(); d++) {
    const int64_t size = x.sizes[static_cast<size_t>(d)];
    (d < dim ? s.outer : d == dim ? s.n : s.inner) *= size;
  }
  return s;
}

// Row x, which begins at `offset`, into `out`; `scratch` holds a row. `prefetch(i, m)` asks for
// what is read after elements i ... i + m.
template <class T, class Prefetch>
void softmax_row(RowBuffer<T>& out, int64_t offset, const T* x, T* scratch, int64_t n, bool log,
                 const Prefetch& prefetch) {
  const RowTable<T>& t = row_table<T>();
  const T high = t.max(x, n);
  // With a NaN, or inf - inf, the sum is NaN and with it every element.
  const bool finite = std::isfinite(high);
  const T sum = !finite ? std::numeric_limits<T>::quiet_NaN()
                : log   ? t.exp_sum(x, high, n)
                        : t.exp_row(scratch, x, high, n);
  out.write(offset, n, [&](T* y, int64_t i, int64_t m) {
    prefetch(i, m);
    if (!finite)
      std::fill_n(y, m, sum);
    else if (log)  // the maximum first: beside a large one the logarithm would be lost
      t.centered(y, x + i, high, T(1), -std::log(sum), m);
    else
      t.affine(y, scratch + i, T(1) / sum, T(0), m);
  });
}

// What softmax needs to know of a tile of m columns with `stride` elements between their rows.
template <class T>
struct ColumnSums {
  T high[kTile], sum[kTile];
};
// The exponentials go to rows of `out`, if that is present.
template <class T>
void sum_columns(ColumnSums<T>& c, const View& out, const View& self, int64_t offset, int64_t n,
                 int64_t m, int64_t stride) {
  RowBuffer<T> xs(self, m), ys(out, m);
  std::fill_n(c.sum, m, T(0));
  std::fill_n(c.high, m, -std::numeric_limits<T>::infinity());
  Looks looks;
  if (self.dtype == kDTypeOf<T>) {
    in_slices(n, [&](int64_t begin, int64_t end) {
      const T* const x = self.as<T>() + offset + begin * stride;
      order_table<T>().max_columns(c.high, x, m, end - begin, stride);
    });
  } else {
    for (int64_t i = 0; i < n; i++) {
      order_table<T>().max_columns(c.high, xs.read(offset + i * stride, m), m, 1, m);
      looks.after(m);
    }
  }
  T ignored[kTile];
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = offset + i * stride;
    T* y = out.present ? ys.open(at) : ignored;
    row_table<T>().exp_columns(y, xs.read(at, m), c.high, c.sum, m);
    if (out.present) ys.close(at, m);
    looks.after(m);
  }
}

template <class T>
void softmax_columns(const View& out, const View& self, int64_t offset, int64_t n, int64_t m,
                     int64_t stride, bool log) {
  const RowTable<T>& t = row_table<T>();
  RowBuffer<T> xs(self, m), ys(out, m);
  ColumnSums<T> c;
  sum_columns(c, log ? View{} : out, self, offset, n, m, stride);
  for (int64_t j = 0; j < m; j++) c.sum[j] = log ? std::log(c.sum[j]) : T(1) / c.sum[j];
  Looks looks;
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = offset + i * stride;
    if (log) {
      T* y = ys.open(at);
      t.subtract(y, xs.read(at, m), c.high, m);
      t.subtract(y, y, c.sum, m);
    } else {
      T* y = ys.read(at, m);
      t.multiply(y, y, c.sum, m);
    }
    ys.close(at, m);
    looks.after(m);
  }
}

// f(begin, end): a range of rows.
template <class F>
void over_rows(const Shape& s, const F& f) {
  parallel_for(0, s.outer, std::max<int64_t>(1, kWork / std::max<int64_t>(1, s.n)), f);
}
// f(offset, m): m columns from `offset` on.
template <class F>
void over_tiles(const Shape& s, const F& f) {
  const int64_t tiles = (s.inner + kTile - 1) / kTile;
  parallel_for(0, s.outer * tiles, std::max<int64_t>(1, kWork / (s.n * std::min(kTile, s.inner))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; i++) {
                   const int64_t first = i % tiles * kTile;
                   f(i / tiles * s.n * s.inner + first, std::min(kTile, s.inner - first));
                 }
               });
}

template <class T>
void run(const View& out, const View& self, int64_t dim, bool log) {
  const Shape s = shape_of(self, dim);
  if (s.inner > 1) {
    over_tiles(s, [&](int64_t offset, int64_t m) {
      softmax_columns<T>(out, self, offset, s.n, m, s.inner, log);
    });
  } else {
    const bool streamed = stream_rows<T>(2 * self.numel * item_size(out.dtype), s.n);
    over_rows(s, [&](int64_t begin, int64_t end) {
      RowBuffer<T> x(self, s.n), y(out, s.n, streamed);
      const Scratch<T> scratch(streamed && !log ? s.n : 0);
      for (int64_t i = begin * s.n; i < end * s.n; i += s.n) {
        softmax_row(y, i, x.read(i, s.n), streamed ? scratch.data() : y.open(i), s.n, log,
                    [&](int64_t k, int64_t m) {
                      if (streamed) x.prefetch(i + s.n + k, m);
                    });
      }
    });
  }
}

// log(sum(exp)) of a row or column, given its maximum and the sum of exp(x - maximum).
template <class T>
T logarithm(T high, T sum) {
  return std::isfinite(high) ? high + std::log(sum) : high;
}
template <class T>
void run_logsumexp(const View& out, const View& self, int64_t dim) {
  const Shape s = shape_of(self, dim);
  const auto store = [&](int64_t i, const T* values, int64_t n) {
    convert_row(at(out, i), out.dtype, 1, values, kDTypeOf<T>, 1, n);
  };
  if (s.inner > 1) {
    over_tiles(s, [&](int64_t offset, int64_t m) {
      ColumnSums<T> c;
      sum_columns(c, View{}, self, offset, s.n, m, s.inner);
      for (int64_t j = 0; j < m; j++) c.sum[j] = logarithm(c.high[j], c.sum[j]);
      store(offset / (s.n * s.inner) * s.inner + offset % s.inner, c.sum, m);
    });
    return;
  }
  const RowTable<T>& t = row_table<T>();
  over_rows(s, [&](int64_t begin, int64_t end) {
    RowBuffer<T> rows(self, s.n);
    for (int64_t i = begin; i < end; i++) {
      const T* x = rows.read(i * s.n, s.n);
      const T high = t.max(x, s.n);
      const T value = logarithm(high, std::isfinite(high) ? t.exp_sum(x, high, s.n) : T(0));
      store(i, &value, 1);
    }
  });
}

template <class T>
void backward_columns(const View& out, const View& gy, const View& y, int64_t offset, int64_t n,
                      int64_t m, int64_t stride, bool log) {
  RowBuffer<T> gs(gy, m), ys(y, m), os(out, m);
  T sum[kTile] = {};
  Looks looks;
  for (int64_t i = 0; i < n; i++) {
    const T* g = gs.read(offset + i * stride, m);
    if (log) {
      row_table<T>().add(sum, g, m);
    } else {
      row_table<T>().add_scaled(sum, g, T(1), T(0), ys.read(offset + i * stride, m), m);
    }
    looks.after(m);
  }
  for (int64_t i = 0; i < n; i++) {
    const T* g = gs.read(offset + i * stride, m);
    const T* v = ys.read(offset + i * stride, m);
    T* o = os.open(offset + i * stride);
    if (log) {
      T e[kTile];
      row_table<T>().exp_row(e, v, T(0), m);
      row_table<T>().multiply(e, e, sum, m);
      row_table<T>().subtract(o, g, e, m);
    } else {
      row_table<T>().subtract(o, g, sum, m);
      row_table<T>().multiply(o, o, v, m);
    }
    os.close(offset + i * stride, m);
    looks.after(m);
  }
}

template <class T>
void run_backward(const View& out, const View& gy, const View& y, int64_t dim, bool log) {
  const Shape s = shape_of(y, dim);
  if (s.inner > 1) {
    over_tiles(s, [&](int64_t offset, int64_t m) {
      backward_columns<T>(out, gy, y, offset, s.n, m, s.inner, log);
    });
    return;
  }
  const RowTable<T>& t = row_table<T>();
  const bool streamed = stream_rows<T>(3 * y.numel * item_size(out.dtype), s.n);
  over_rows(s, [&](int64_t begin, int64_t end) {
    RowBuffer<T> gs(gy, s.n), ys(y, s.n), os(out, s.n, streamed);
    for (int64_t i = begin * s.n; i < end * s.n; i += s.n) {
      const T* g = gs.read(i, s.n);
      const T* v = ys.read(i, s.n);
      const T sum = log ? static_cast<T>(t.sum(g, s.n)) : t.dot(g, v, s.n);
      os.write(i, s.n, [&](T* o, int64_t k, int64_t m) {
        if (streamed) {
          gs.prefetch(i + s.n + k, m);
          ys.prefetch(i + s.n + k, m);
        }
        (log ? t.log_softmax_backward : t.softmax_backward)(o, g + k, v + k, sum, m);
      });
    }
  });
}

void forward(const View& out, const View& self, int64_t dim, bool log) {
  if (out.numel == 0) return;
  // With dtype= the input is converted first, so it is read in the result's precision.
  with_wide_floating(out.dtype, [&](auto zero) { run<decltype(zero)>(out, self, dim, log); });
}
void backward(const View& out, const View& gy, const View& y, int64_t dim, bool log) {
  if (out.numel == 0) return;
  with_wide_floating(y.dtype,
                     [&](auto zero) { run_backward<decltype(zero)>(out, gy, y, dim, log); });
}

}  // namespace

void softmax(const View& out, const View& self, int64_t dim, OptDType) {
  forward(out, self, dim, /*log=*/false);
}
void log_softmax(const View& out, const View& self, int64_t dim, OptDType) {
  forward(out, self, dim, /*log=*/true);
}
void logsumexp(const View& out, const View& self, int64_t dim, bool) {
  if (out.numel == 0) return;
  with_wide_floating(self.dtype, [&](auto zero) { run_logsumexp<decltype(zero)>(out, self, dim); });
}
void softmax_backward(const View& out, const View& gy, const View& result, int64_t dim, DType) {
  backward(out, gy, result, dim, /*log=*/false);
}
void log_softmax_backward(const View& out, const View& gy, const View& result, int64_t dim, DType) {
  backward(out, gy, result, dim, /*log=*/true);
}

}  // namespace taeda::cpu
