// cdist and pdist: the p-norms of the differences of all rows of one matrix and of another, or of
// all pairs of rows.
//
// Lanes are neighbouring rows, so that no sum goes across a vector: some of them are a panel of
// columns, in which every row of the first matrix finds its distances to all of them at once. Sums
// are taken in parts, whose rounding errors do not grow with the number of columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/distances.cc"
#include "kernels/cpu/simd/simd.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/optional.h"
#include "kernels/view.h"

#ifndef TAEDA_KERNELS_CPU_ROWS_DISTANCES_
#define TAEDA_KERNELS_CPU_ROWS_DISTANCES_
namespace taeda::cpu {
namespace {

// From row i of x to row j of y, both of n elements; of `pairs`, where x is y, for i < j alone.
template <class T>
struct Distances {
  const T *x, *y;
  T* out;
  int64_t batch, rows, others, n;
  bool pairs;
};

}  // namespace
}  // namespace taeda::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kVectors = 4;             // of a panel's row
constexpr int64_t kPart = 64;               // summands
constexpr int64_t kBetweenLooks = 1 << 12;  // rows, for an interrupt

// How the differences d of two rows become a norm; those of order 0 and inf are no sums of powers.
template <class T>
struct Count {
  using V = Vec<T>;
  TD_FN V with(V sum, V d) const { return sum + select(d != V(0), V(1), V(0)); }
  TD_FN V join(V a, V b) const { return a + b; }
  TD_FN V norm(V sum) const { return sum; }
};
template <class T>
struct Sum : Count<T> {
  using V = Vec<T>;
  TD_FN V with(V sum, V d) const { return sum + abs(d); }
};
template <class T>
struct Squares : Count<T> {
  using V = Vec<T>;
  TD_FN V with(V sum, V d) const { return fma(d, d, sum); }
  TD_FN V norm(V sum) const { return sqrt(sum); }
};
template <class T>
struct Largest : Count<T> {
  using V = Vec<T>;
  TD_FN V with(V most, V d) const { return max(most, abs(d)); }
  TD_FN V join(V a, V b) const { return max(a, b); }
};
// Once in the library: it is long, and takes much longer than a call.
template <class T>
HWY_NOINLINE Vec<T> power(Vec<T> x, Vec<T> p) {
  return pow(x, p);
}
template <class T>
struct Powers : Count<T> {
  using V = Vec<T>;
  V p, inverse;
  explicit Powers(double p) : p(p), inverse(1 / p) {}
  TD_FN V with(V sum, V d) const { return sum + power(abs(d), p); }
  TD_FN V norm(V sum) const { return power(sum, inverse); }
};

// The distances of row x of n elements to all rows of a panel. Its four vectors have names: those
// of an array would not stay in registers.
template <class T, class Norm>
HWY_NOINLINE void distances(const Norm& norm, const T* x, const T* panel, int64_t n, T* out) {
  constexpr int64_t kLanes = Vec<T>::size();
  static_assert(kVectors == 4);
  const Norm order = norm;
  Vec<T> a(0), b(0), c(0), d(0);
  for (int64_t k = 0; k < n;) {
    Vec<T> e(0), f(0), g(0), h(0);
    for (const int64_t end = std::min(n, k + kPart); k < end; k++, panel += kVectors * kLanes) {
      const Vec<T> here(x[k]);
      e = order.with(e, here - load(panel));
      f = order.with(f, here - load(panel + kLanes));
      g = order.with(g, here - load(panel + 2 * kLanes));
      h = order.with(h, here - load(panel + 3 * kLanes));
    }
    a = order.join(a, e);
    b = order.join(b, f);
    c = order.join(c, g);
    d = order.join(d, h);
  }
  store(out, order.norm(a));
  store(out + kLanes, order.norm(b));
  store(out + 2 * kLanes, order.norm(c));
  store(out + 3 * kLanes, order.norm(d));
}

// `count` rows of x, at most kWidth, become a panel's columns; others are 0. By parts that stay in
// the first cache.
template <class T>
void fill_panel(T* panel, const T* x, int64_t count, int64_t n) {
  constexpr int64_t kWidth = kVectors * Vec<T>::size();
  if (count < kWidth) std::fill_n(panel, kWidth * n, T(0));
  for (int64_t begin = 0; begin < n; begin += kPart) {
    const int64_t end = std::min(n, begin + kPart);
    for (int64_t j = 0; j < count; j++)
      for (int64_t k = begin; k < end; k++) panel[k * kWidth + j] = x[j * n + k];
  }
}

template <class T, class Norm>
void all_distances(const Norm& order, const Distances<T>& d) {
  constexpr int64_t kWidth = kVectors * Vec<T>::size(), kWork = 1 << 17;
  const int64_t rows = d.rows, n = d.n, panels = (d.others + kWidth - 1) / kWidth;
  const int64_t grain = std::max<int64_t>(1, kWork / (rows * kWidth * n));
  parallel_for(0, d.batch * panels, grain, [&](int64_t begin, int64_t end) {
    const Scratch<T> panel(kWidth * n);
    for (int64_t k = begin; k < end; k++) {
      const int64_t b = k / panels, first = k % panels * kWidth,
                    count = std::min(kWidth, d.others - first);
      const T* const x = d.x + b * rows * n;
      fill_panel(panel.data(), d.y + (b * d.others + first) * n, count, n);
      for (int64_t i = 0; i < (d.pairs ? first + count - 1 : rows); i++) {
        if (i % kBetweenLooks == kBetweenLooks - 1) check_interrupt();
        T found[kWidth];
        distances(order, x + i * n, panel.data(), n, found);
        const int64_t j = d.pairs ? std::max(first, i + 1) : first;
        T* const row =
            d.out + (d.pairs ? i * (2 * rows - i - 1) / 2 - i - 1 : (b * rows + i) * d.others);
        std::copy(found + (j - first), found + count, row + j);
      }
    }
  });
}

template <class T>
void find_distances(const Distances<T>& d, double p) {
  if (p == 0) return all_distances(Count<T>(), d);
  if (p == 1) return all_distances(Sum<T>(), d);
  if (p == 2) return all_distances(Squares<T>(), d);
  if (std::isinf(p)) return all_distances(Largest<T>(), d);
  all_distances(Powers<T>(p), d);
}
void distances_f32(const Distances<float>& d, double p) { find_distances(d, p); }
void distances_f64(const Distances<double>& d, double p) { find_distances(d, p); }

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(distances_f32);
HWY_EXPORT(distances_f64);

namespace {

void distances(const View& out, const View& x, const View& y, bool pairs, double p) {
  if (out.numel == 0) return;
  const size_t last = x.sizes.size() - 1;
  const int64_t rows = x.sizes[last - 1], others = y.sizes[last - 1], n = x.sizes[last];
  if (n == 0) {  // of any type
    std::memset(out.data, 0, static_cast<size_t>(out.numel * item_size(out.dtype)));
    return;
  }
  const int64_t batch = x.numel / (rows * n);
  const auto all = [&]<class T>(T) {
    return Distances<T>{x.as<T>(), y.as<T>(), out.as<T>(), batch, rows, others, n, pairs};
  };
  if (x.dtype == DType::kFloat32)
    HWY_DYNAMIC_DISPATCH(distances_f32)(all(float()), p);
  else
    HWY_DYNAMIC_DISPATCH(distances_f64)(all(double()), p);
}

}  // namespace

void pdist(const View& out, const View& self, double p) { distances(out, self, self, true, p); }
void cdist(const View& out, const View& x1, const View& x2, double p, OptInt) {
  distances(out, x1, x2, false, p);
}

}  // namespace taeda::cpu
#endif
