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

constexpr int64_t kPart = 64;  // elements of a row that are worked on together

// The distances, of order p, of row x of n elements to the `width` rows of a panel.
template <class T>
struct PanelDistances {
  using Function = void (*)(const T* x, const T* panel, int64_t n, double p, T* out);
  int64_t width;
  Function of_0, of_1, of_2, of_infinity, of_any;
};

}  // namespace
}  // namespace taeda::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

// How the differences d of two rows become a norm; those of order 0 and inf are no sums of powers.
template <class T>
struct Count {
  using V = Vec<T>;
  explicit Count(double) {}
  TD_FN V with(V sum, V d) const { return sum + select(d != V(0), V(1), V(0)); }
  TD_FN V join(V a, V b) const { return a + b; }
  TD_FN V norm(V sum) const { return sum; }
};
template <class T>
struct Sum : Count<T> {
  using V = Vec<T>;
  using Count<T>::Count;
  TD_FN V with(V sum, V d) const { return sum + abs(d); }
};
template <class T>
struct Squares : Count<T> {
  using V = Vec<T>;
  using Count<T>::Count;
  TD_FN V with(V sum, V d) const { return fma(d, d, sum); }
  TD_FN V norm(V sum) const { return sqrt(sum); }
};
template <class T>
struct Largest : Count<T> {
  using V = Vec<T>;
  using Count<T>::Count;
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
  explicit Powers(double p) : Count<T>(p), p(p), inverse(1 / p) {}
  TD_FN V with(V sum, V d) const { return sum + power(abs(d), p); }
  TD_FN V norm(V sum) const { return power(sum, inverse); }
};

// The distances of row x of n elements to all rows of a panel. Its four vectors have names: those
// of an array would not stay in registers.
template <class T, class Norm>
void distances(const T* x, const T* panel, int64_t n, double p, T* out) {
  constexpr int64_t kLanes = Vec<T>::size();
  const Norm order(p);
  Vec<T> a(0), b(0), c(0), d(0);
  for (int64_t k = 0; k < n;) {
    Vec<T> e(0), f(0), g(0), h(0);
    for (const int64_t end = std::min(n, k + kPart); k < end; k++, panel += 4 * kLanes) {
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

template <class T>
const PanelDistances<T>& table() {
  static constexpr PanelDistances<T> kTable{4 * Vec<T>::size(),       distances<T, Count<T>>,
                                            distances<T, Sum<T>>,     distances<T, Squares<T>>,
                                            distances<T, Largest<T>>, distances<T, Powers<T>>};
  return kTable;
}
const PanelDistances<float>& float_table() { return table<float>(); }
const PanelDistances<double>& double_table() { return table<double>(); }

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(float_table);
HWY_EXPORT(double_table);

namespace {

constexpr int64_t kBetweenLooks = 1 << 12;  // rows, for an interrupt

// `count` rows of x become the columns of a panel of this width; others are 0. By parts that stay
// in the first cache.
template <class T>
void fill_panel(T* panel, int64_t width, const T* x, int64_t count, int64_t n) {
  if (count < width) std::fill_n(panel, width * n, T(0));
  for (int64_t begin = 0; begin < n; begin += kPart) {
    const int64_t end = std::min(n, begin + kPart);
    for (int64_t j = 0; j < count; j++)
      for (int64_t k = begin; k < end; k++) panel[k * width + j] = x[j * n + k];
  }
}

// From row i of x to row j of y; of `pairs`, where x is y, for i < j alone.
template <class T>
void distances(const PanelDistances<T>& table, const View& out, const View& first,
               const View& second, bool pairs, double p) {
  constexpr int64_t kWork = 1 << 17, kMostWidth = 4 * 64 / sizeof(T);
  const auto find = p == 0          ? table.of_0
                    : p == 1        ? table.of_1
                    : p == 2        ? table.of_2
                    : std::isinf(p) ? table.of_infinity
                                    : table.of_any;
  const size_t last = first.sizes.size() - 1;
  const int64_t rows = first.sizes[last - 1], others = second.sizes[last - 1],
                n = first.sizes[last], width = table.width, panels = (others + width - 1) / width,
                batch = first.numel / (rows * n);
  const int64_t grain = std::max<int64_t>(1, kWork / (rows * width * n));
  parallel_for(0, batch * panels, grain, [&](int64_t begin, int64_t end) {
    const Scratch<T> panel(width * n);
    T found[kMostWidth];
    for (int64_t k = begin; k < end; k++) {
      const int64_t b = k / panels, at = k % panels * width, count = std::min(width, others - at);
      const T* const x = first.as<T>() + b * rows * n;
      fill_panel(panel.data(), width, second.as<T>() + (b * others + at) * n, count, n);
      for (int64_t i = 0; i < (pairs ? at + count - 1 : rows); i++) {
        if (i % kBetweenLooks == kBetweenLooks - 1) check_interrupt();
        find(x + i * n, panel.data(), n, p, found);
        const int64_t j = pairs ? std::max(at, i + 1) : at;
        T* const row =
            out.as<T>() + (pairs ? i * (2 * rows - i - 1) / 2 - i - 1 : (b * rows + i) * others);
        std::copy(found + (j - at), found + count, row + j);
      }
    }
  });
}

void distances(const View& out, const View& x, const View& y, bool pairs, double p) {
  if (out.numel == 0) return;
  if (x.numel == 0)  // of any type
    std::memset(out.data, 0, static_cast<size_t>(out.numel * item_size(out.dtype)));
  else if (x.dtype == DType::kFloat32)
    distances(HWY_DYNAMIC_DISPATCH(float_table)(), out, x, y, pairs, p);
  else
    distances(HWY_DYNAMIC_DISPATCH(double_table)(), out, x, y, pairs, p);
}

}  // namespace

void pdist(const View& out, const View& self, double p) { distances(out, self, self, true, p); }
void cdist(const View& out, const View& x1, const View& x2, double p, OptInt) {
  distances(out, x1, x2, false, p);
}

}  // namespace taeda::cpu
#endif
