#include "kernels/cpu/lapack/blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/lapack/blocks.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

// Vectors of real numbers, or of complex ones whose parts alternate.
template <class T>
struct Parts {
  using Real = T;
  static constexpr int64_t kCount = 1;
};
template <class R>
struct Parts<std::complex<R>> {
  using Real = R;
  static constexpr int64_t kCount = 2;
};
template <class T>
using Real = typename Parts<T>::Real;
template <class T>
using V = Vec<Real<T>>;
template <class T>
constexpr bool kComplex = Parts<T>::kCount == 2;
template <class T>
constexpr int64_t kLanes = V<T>::size() / Parts<T>::kCount;  // 0: vectors are too short

template <class T>
TD_FN const Real<T>* parts(const T* p) {
  return reinterpret_cast<const Real<T>*>(p);
}
template <class T>
TD_FN Real<T>* parts(T* p) {
  return reinterpret_cast<Real<T>*>(p);
}
template <class T>
TD_FN V<T> load_first(const T* p, int64_t n) {
  return load_n(parts(p), n * Parts<T>::kCount);
}
template <class T>
TD_FN void store_first(T* p, V<T> v, int64_t n) {
  store_n(parts(p), v, n * Parts<T>::kCount);
}

template <class R>
TD_FN R size_of(R x) {
  return std::abs(x);
}
template <class R>
TD_FN R size_of(std::complex<R> z) {
  return std::abs(z.real()) + std::abs(z.imag());
}
template <class T>
TD_FN V<T> sizes_of(V<T> v) {
  V<T> size = abs(v);
  if constexpr (kComplex<T>) size = size + V<T>(hn::Reverse2(typename V<T>::Tag(), size.raw));
  return size;
}

// A number to multiply vectors with.
template <class T>
struct Factor {
  TD_FN explicit Factor(T x) : real(x) {}
  TD_FN V<T> times(V<T> v) const { return real * v; }
  TD_FN V<T> times_plus(V<T> v, V<T> sum) const { return fma(real, v, sum); }
  V<T> real;
};
template <class R>
struct Factor<std::complex<R>> {
  using T = std::complex<R>;
  TD_FN explicit Factor(T z) : real(z.real()), imaginary(z.imag()) {
    imaginary = V<T>(hn::OddEven(imaginary.raw, (-imaginary).raw));
  }
  TD_FN V<T> times(V<T> v) const { return fma(real, v, imaginary * exchanged(v)); }
  TD_FN V<T> times_plus(V<T> v, V<T> sum) const {
    return fma(real, v, fma(imaginary, exchanged(v), sum));
  }
  static TD_FN V<T> exchanged(V<T> v) { return hn::Reverse2(typename V<T>::Tag(), v.raw); }
  V<T> real, imaginary;
};

// y -= a x, of complex numbers without the checks for infinities of their operators.
template <class R>
TD_FN void subtract_product(R& y, R a, R x) {
  y -= a * x;
}
template <class R>
TD_FN void subtract_product(std::complex<R>& y, std::complex<R> a, std::complex<R> x) {
  y = {y.real() - (a.real() * x.real() - a.imag() * x.imag()),
       y.imag() - (a.real() * x.imag() + a.imag() * x.real())};
}

template <class T>
bool has_reciprocal(T x) {
  return size_of(x) >= std::numeric_limits<Real<T>>::min();
}

// x = x / divisor, n elements of a vector or, where that has none, by hand; with kSlack up to
// kLanes - 1 more, where storing a part of a vector would take much longer.
template <bool kSlack = false, class T>
TD_FN void divide(T* x, int64_t n, T divisor) {
  int64_t i = 0;
  if constexpr (kLanes < T >> 0) {
    if (has_reciprocal(divisor)) {
      const Factor<T> factor(T(1) / divisor);
      for (; i + (kSlack ? 1 : kLanes<T>) <= n; i += kLanes<T>)
        store(parts(x + i), factor.times(load(parts(x + i))));
      if (i < n) store_first(x + i, factor.times(load_first(x + i, n - i)), n - i);
      return;
    }
  }
  for (; i < n; i++) x[i] /= divisor;
}

// One row of a substitution for kWhole vectors of columns, or for the first `lanes` columns where
// that is 0: less its multiples of the rows [begin, end) of b.
template <int kWhole, class T>
TD_FN void substitute(const TriangleBlock<T>& t, T* b, int64_t i, int64_t begin, int64_t end,
                      int64_t lanes) {
  constexpr int kVectors = std::max(1, kWhole);
  const auto read = [&](const T* p, int v) {
    return kWhole > 0 ? load(parts(p + v * kLanes<T>)) : load_first(p, lanes);
  };
  const T* const line = t.a + i * t.row;
  T* const row = b + i * t.b_row;
  V<T> sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; v++) sums[v] = read(row, v);
  for (int64_t j = begin; j < end; j++) {
    const Factor<T> factor(-line[j * t.column]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; v++)
      sums[v] = factor.times_plus(read(b + j * t.b_row, v), sums[v]);
  }
  if (!t.unit && has_reciprocal(line[i * t.column])) {
    const Factor<T> factor(T(1) / line[i * t.column]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; v++) sums[v] = factor.times(sums[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; v++) {
    if (kWhole > 0)
      store(parts(row + v * kLanes<T>), sums[v]);
    else
      store_first(row, sums[v], lanes);
  }
  if (!t.unit && !has_reciprocal(line[i * t.column]))
    divide(row, kWhole > 0 ? kWhole * kLanes<T> : lanes, line[i * t.column]);
}

template <int kWhole, class T>
TD_FN void solve_columns(const TriangleBlock<T>& t, T* b, int64_t lanes) {
  for (int64_t step = 0; step < t.n; step++) {
    const int64_t i = t.upper ? t.n - 1 - step : step;
    const int64_t begin = t.upper ? i + 1 : 0, end = t.upper ? t.n : i;
    if constexpr (kLanes < T >> 0) {
      substitute<kWhole>(t, b, i, begin, end, lanes);
    } else {
      T& x = b[i * t.b_row];
      for (int64_t j = begin; j < end; j++)
        subtract_product(x, t.a[i * t.row + j * t.column], b[j * t.b_row]);
      if (!t.unit) x /= t.a[i * t.row + i * t.column];
    }
  }
}

template <class T>
void solve_block_of(const TriangleBlock<T>& t) {
  constexpr int64_t kStep = std::max<int64_t>(1, kLanes<T>);
  int64_t at = 0;
  for (; kLanes < T >> 0 && at + 8 * kStep <= t.columns; at += 8 * kStep)
    solve_columns<8>(t, t.b + at, 0);
  for (; kLanes < T >> 0 && at + 2 * kStep <= t.columns; at += 2 * kStep)
    solve_columns<2>(t, t.b + at, 0);
  for (; kLanes < T >> 0 && at + kStep <= t.columns; at += kStep) solve_columns<1>(t, t.b + at, 0);
  for (; at < t.columns; at += kStep)
    solve_columns<0>(t, t.b + at, std::min(kStep, t.columns - at));
}

constexpr int64_t kShort = 8;  // elements, for which vectors do not pay

// The first index of the largest of n sizes. As in LAPACK nothing is larger than a NaN that is
// first, and no other one counts.
template <class T>
TD_FN int64_t index_of_largest(const T* x, int64_t n) {
  int64_t i = 0;
  if (x[0] != x[0]) return 0;
  if (n <= kShort || kLanes<T> == 0) {
    for (int64_t at = 1; at < n; at++)  // no branches: which is larger cannot be foreseen
      i = size_of(x[at]) > size_of(x[i]) ? at : i;
    return i;
  }
  if constexpr (kLanes < T >> 0) {
    V<T> most(0);
    for (; i + kLanes<T> <= n; i += kLanes<T>)
      most = raw_max(sizes_of<T>(load(parts(x + i))), most);
    most = raw_max(sizes_of<T>(load_first(x + i, n - i)), most);
    const Real<T> largest = hn::GetLane(hn::MaxOfLanes(typename V<T>::Tag(), most.raw));
    const V<T> wanted(largest);
    for (i = 0; i + kLanes<T> <= n; i += kLanes<T>)
      if (any(sizes_of<T>(load(parts(x + i))) == wanted)) break;
    while (i < n && !(size_of(x[i]) == largest)) i++;
  }
  return i < n ? i : 0;
}

// n elements, and slack, of kColumns columns of `to`, `ld` apart: less the column `x` times their
// factors.
template <int kColumns, class T>
TD_FN void subtract_multiples(T* to, int64_t ld, const T* x, int64_t n, const T* factors) {
  if constexpr (kLanes<T> == 0) {
    for (int c = 0; c < kColumns; c++)
      for (int64_t i = 0; i < n; i++) subtract_product(to[c * ld + i], factors[c * ld], x[i]);
  } else {
    const auto minus = [&](int c) { return Factor<T>(-factors[c * ld]); };
    const Factor<T> factor[] = {minus(0), minus(kColumns > 1), minus(kColumns > 1 ? 2 : 0),
                                minus(kColumns > 1 ? 3 : 0)};
    for (int64_t i = 0; i < n; i += kLanes<T>) {
      const V<T> v = load(parts(x + i));
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; c++) {
        Real<T>* const p = parts(to + c * ld + i);
        store(p, factor[c].times_plus(v, load(p)));
      }
    }
  }
}

// Factors of a real matrix of kSize rows and columns, in loops that are unrolled. Rows are
// exchanged without asking whether they are two: which is cannot be foreseen.
template <int kSize, class T>
int factor_few(T* a, int64_t ld, int* pivots) {
  int info = 0;
#pragma GCC unroll 4
  for (int j = 0; j < kSize; j++) {
    T* const column = a + j * ld;
    const int p = j + static_cast<int>(index_of_largest(column + j, kSize - j));
    pivots[j] = p;
#pragma GCC unroll 4
    for (int c = 0; c < kSize; c++) std::swap(a[c * ld + j], a[c * ld + p]);
    const bool is_zero = column[j] == T(0);  // and so is what is below, or NaN, which spreads
    if (is_zero && info == 0) info = j + 1;
    const T pivot = is_zero ? T(1) : column[j];
    const bool multiply = has_reciprocal(pivot);
    const T inverse = T(1) / pivot;
#pragma GCC unroll 4
    for (int i = j + 1; i < kSize; i++)
      column[i] = multiply ? column[i] * inverse : column[i] / pivot;
#pragma GCC unroll 4
    for (int c = j + 1; c < kSize; c++)
#pragma GCC unroll 4
      for (int i = j + 1; i < kSize; i++) a[c * ld + i] -= a[c * ld + j] * column[i];
  }
  return info;
}

template <class T>
int factor_columns_of(T* a, int64_t ld, int64_t rows, int64_t columns, int* pivots) {
  if constexpr (!kComplex<T>) {
    if (rows == 3 && columns == 3) return factor_few<3>(a, ld, pivots);
    if (rows == 4 && columns == 4) return factor_few<4>(a, ld, pivots);
  }
  int info = 0;
  for (int64_t j = 0; j < std::min(rows, columns); j++) {
    T* const diagonal = a + j * ld + j;
    const int64_t p = j + index_of_largest(diagonal, rows - j);
    pivots[j] = static_cast<int>(p);
    for (int64_t c = 0; p != j && c < columns; c++) std::swap(a[c * ld + j], a[c * ld + p]);
    const int64_t below = rows - j - 1;
    if (*diagonal != T(0))
      divide<true>(diagonal + 1, below, *diagonal);
    else if (info == 0)  // and what is below is zero, too, or NaN, which spreads
      info = static_cast<int>(j) + 1;
    int64_t c = j + 1;
    for (; c + 4 <= columns; c += 4)
      subtract_multiples<4>(a + c * ld + j + 1, ld, diagonal + 1, below, a + c * ld + j);
    for (; c < columns; c++)
      subtract_multiples<1>(a + c * ld + j + 1, ld, diagonal + 1, below, a + c * ld + j);
  }
  return info;
}

template <class T>
int factor_positive_of(T* a, int64_t ld, int64_t n) {
  for (int64_t j = 0; j < n; j++) {
    T* const diagonal = a + j * ld + j;
    if (!(*diagonal > 0)) return static_cast<int>(j) + 1;
    *diagonal = std::sqrt(*diagonal);
    const int64_t below = n - j - 1;
    divide<true>(diagonal + 1, below, *diagonal);
    for (int64_t c = j + 1; c < n; c++)
      subtract_multiples<1>(a + c * ld + c, ld, a + j * ld + c, n - c, a + j * ld + c);
  }
  return 0;
}

}  // namespace

template <class T>
constexpr auto factor_positive() -> decltype(LuBlocks<T>::factor_positive) {
  if constexpr (kComplex<T>) return nullptr;
  if constexpr (!kComplex<T>) return factor_positive_of<T>;
}
template <class T>
constexpr LuBlocks<T> kBlocks{solve_block_of<T>, factor_columns_of<T>, factor_positive<T>(),
                              std::max<int64_t>(1, kLanes<T>) - 1};
const LuBlocks<float>* blocks_f32() { return &kBlocks<float>; }
const LuBlocks<double>* blocks_f64() { return &kBlocks<double>; }
const LuBlocks<std::complex<float>>* blocks_c64() { return &kBlocks<std::complex<float>>; }
const LuBlocks<std::complex<double>>* blocks_c128() { return &kBlocks<std::complex<double>>; }

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

#define TD_BLOCKS(type, name)                                           \
  HWY_EXPORT(name);                                                     \
  template <>                                                           \
  const LuBlocks<type>& lu_blocks<type>() {                             \
    static const LuBlocks<type>& table = *HWY_DYNAMIC_DISPATCH(name)(); \
    return table;                                                       \
  }
TD_BLOCKS(float, blocks_f32)
TD_BLOCKS(double, blocks_f64)
TD_BLOCKS(std::complex<float>, blocks_c64)
TD_BLOCKS(std::complex<double>, blocks_c128)
#undef TD_BLOCKS

}  // namespace taeda::cpu
#endif
