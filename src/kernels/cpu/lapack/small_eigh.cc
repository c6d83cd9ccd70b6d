// Householder's reflectors make the matrix tridiagonal, implicit QL steps with Wilkinson's shift
// diagonal [Golub and Van Loan, "Matrix Computations", 8.3]. The steps compute in double, which
// float's rotations cannot leave the range of, while the vectors turn in T.
//
// Columns lie a whole number of vectors apart, with zeros at their ends: storing a part of a vector
// takes much longer.
#include "kernels/cpu/lapack/small_eigh.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/lapack/small_eigh.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

// A tridiagonal matrix: its diagonal, the one below it, and which columns of V are its rows'.
struct Tridiagonal {
  double d[kSmallEigh], e[kSmallEigh];
  int column[kSmallEigh];
};
// Rotation i of a step is that of rows i and i + 1.
struct Rotations {
  double c[kSmallEigh], s[kSmallEigh];
};

// A QL step on rows [l, m].
void step(Tridiagonal& t, int l, int m, Rotations& rotations) {
  constexpr double kNothing = 1e-150;  // whose square still is a normal number's
  double* const d = t.d;
  double* const e = t.e;
  const double half = (d[l + 1] - d[l]) / (2 * e[l]);
  double g = d[m] - d[l] + e[l] / (half + std::copysign(std::sqrt(half * half + 1), half));
  double s = 1, c = 1, p = 0;
  for (int i = m - 1; i >= l; i--) {
    const double f = s * e[i], b = c * e[i], r = std::sqrt(f * f + g * g);
    if (r < kNothing) {  // the matrix falls apart here
      d[i + 1] -= p;
      e[i + 1] = e[m] = 0;
      std::fill(rotations.c + l, rotations.c + i + 1, 1.0);
      std::fill(rotations.s + l, rotations.s + i + 1, 0.0);
      return;
    }
    e[i + 1] = r;
    rotations.s[i] = s = f / r;
    rotations.c[i] = c = g / r;
    g = d[i + 1] - p;
    const double change = (d[i] - g) * s + 2 * c * b;
    p = s * change;
    d[i + 1] = g + p;
    g = c * change - b;
  }
  d[l] -= p;
  e[l] = g;
  e[m] = 0;
}

template <class T>
class SmallEigh {
 public:
  static bool run(const T* a, int n, bool by_rows, T* values, T* vectors) {
    if (n > (vectors ? std::min(kMost, kSmallEighVectors) : kMost)) return false;
    SmallEigh work(n, vectors != nullptr);
    if (!work.load_triangle(a, by_rows)) return false;
    work.reduce();
    if (!work.iterate()) return false;
    work.write(values, vectors);
    return true;
  }

 private:
  static constexpr int kLanes = static_cast<int>(Vec<T>::size());
  // Without vectors LAPACK, which has them all the same, is faster from here on.
  static constexpr int kMost = TD_EMULATED ? 16 : kSmallEigh;

  SmallEigh(int n, bool with_vectors)
      : n_(n), ld_((n + kLanes - 1) / kLanes * kLanes), with_vectors_(with_vectors) {}

  // The whole matrix, scaled by a power of two where its squares might leave the range of T.
  bool load_triangle(const T* a, bool by_rows) {
    T most = 0;
    bool finite = true;
    std::fill_n(a_, n_ * ld_, T(0));
    for (int j = 0; j < n_; j++)
      for (int i = j; i < n_; i++) {
        const T x = by_rows ? a[i * n_ + j] : a[j * n_ + i];
        a_[j * ld_ + i] = a_[i * ld_ + j] = x;
        most = std::max(most, std::abs(x));
        finite &= std::abs(x) <= std::numeric_limits<T>::max();
      }
    if (most > 0 && (most < T(1e-9) || most > T(1e9)) && finite) {
      constexpr int kLimit = std::numeric_limits<T>::max_exponent - 2;
      exponent_ = std::clamp(std::ilogb(most), -kLimit, kLimit);
      const T scale = std::ldexp(T(1), -exponent_);
      for (int i = 0; i < n_ * ld_; i++) a_[i] *= scale;
    }
    return finite;
  }

  static TD_FN T dot(const T* x, const T* y, int begin, int end) {
    Vec<T> sum = 0;
    for (int i = begin; i < end; i += kLanes) sum = fma(load(x + i), load(y + i), sum);
    return hn::GetLane(hn::SumOfLanes(typename Vec<T>::Tag(), sum.raw));
  }
  // y = s sum_j x[j] (column j of a), j in [first, n), from row `begin` on.
  TD_FN void multiply(const T* a, const T* x, int first, int begin, T s, T* y) const {
    for (int i = begin; i < ld_; i += kLanes) {
      Vec<T> sum = 0;
      for (int j = first; j < n_; j++) sum = fma(Vec<T>(x[j]), load(a + j * ld_ + i), sum);
      store(y + i, Vec<T>(s) * sum);
    }
  }

  // A = Q T Q^T, Q = H_0 ... H_{n-3}: H_k = I - tau v v^T makes column k zero below row k + 1.
  void reduce() {
    constexpr T kNegligible = sizeof(T) == 4 ? T(1e-36) : T(1e-290);  // of a scaled matrix, squared
    alignas(64) T v[kSmallEigh] = {}, w[kSmallEigh], u[kSmallEigh];
    if (with_vectors_) {
      std::fill_n(z_, n_ * ld_, T(0));
      for (int j = 0; j < n_; j++) z_[j * ld_ + j] = 1;
    }
    for (int k = 0; k < n_; k++) {
      const T* const column = a_ + k * ld_;
      t_.column[k] = k;
      t_.d[k] = column[k];
      t_.e[k] = k + 1 < n_ ? column[k + 1] : T(0);
      if (k + 2 >= n_) continue;
      const int first = k + 1, begin = first / kLanes * kLanes;
      std::fill_n(v, k + 2, T(0));
      std::copy(column + k + 2, column + n_, v + k + 2);
      const T square = dot(v, v, begin, ld_), alpha = column[first];
      if (square <= kNegligible) continue;
      const T beta = -std::copysign(std::sqrt(alpha * alpha + square), alpha);
      const T tau = (beta - alpha) / beta;
      const Vec<T> inverse = 1 / (alpha - beta);
      for (int i = begin; i < ld_; i += kLanes) store(v + i, inverse * load(v + i));
      v[first] = 1;
      t_.e[k] = beta;
      // H A H = A - v w^T - w v^T
      multiply(a_, v, first, begin, tau, w);
      const Vec<T> along = T(-0.5) * tau * dot(w, v, begin, ld_);
      for (int i = begin; i < ld_; i += kLanes) store(w + i, fma(along, load(v + i), load(w + i)));
      for (int j = first; j < n_; j++) {
        const Vec<T> minus_w = -w[j], minus_v = -v[j];
        T* const to = a_ + j * ld_;
        for (int i = begin; i < ld_; i += kLanes)
          store(to + i, fma(minus_v, load(w + i), fma(minus_w, load(v + i), load(to + i))));
      }
      if (!with_vectors_) continue;
      multiply(z_, v, first, 0, tau, u);
      for (int j = first; j < n_; j++) {
        const Vec<T> minus_v = -v[j];
        T* const to = z_ + j * ld_;
        for (int i = 0; i < ld_; i += kLanes)
          store(to + i, fma(minus_v, load(u + i), load(to + i)));
      }
    }
  }

  bool is_negligible(int i) const {
    constexpr double kEpsilon = std::numeric_limits<T>::epsilon() / 2, kLeast = 1e-290;
    return t_.e[i] * t_.e[i] <=
           kEpsilon * kEpsilon * std::abs(t_.d[i]) * std::abs(t_.d[i + 1]) + kLeast;
  }
  // The last row of the block without a negligible element below the diagonal that begins with l.
  int end_of_block(int l, int last) const {
    while (l < last && !is_negligible(l)) l++;
    return l;
  }

  bool iterate() {
    int steps = 30 * n_;
    for (int begin = 0; begin < n_;) {
      const int end = end_of_block(begin, n_ - 1);
      // Large elements last: small ones are found first, which large ones would round away.
      if (std::abs(t_.d[begin]) > std::abs(t_.d[end])) {
        std::reverse(t_.d + begin, t_.d + end + 1);
        std::reverse(t_.e + begin, t_.e + end);
        std::reverse(t_.column + begin, t_.column + end + 1);
      }
      for (int l = begin; l <= end;) {
        const int m = end_of_block(l, end);
        if (m == l) {
          l++;
          continue;
        }
        if (--steps < 0) return false;
        step(t_, l, m, rotations_);
        if (with_vectors_) rotate(l, m);
      }
      begin = end + 1;
    }
    return true;
  }

  T* vector(int i) { return z_ + t_.column[i] * ld_; }
  void rotate(int l, int m) {
    for (int row = 0; row < ld_; row += kLanes) {
      Vec<T> x = load(vector(m) + row);
      for (int i = m - 1; i >= l; i--) {
        const Vec<T> c = rotations_.c[i], s = rotations_.s[i], y = load(vector(i) + row);
        store(vector(i + 1) + row, fma(c, x, s * y));
        x = fma(-s, x, c * y);
      }
      store(vector(l) + row, x);
    }
  }

  void write(T* values, T* vectors) {
    int order[kSmallEigh];
    for (int i = 0; i < n_; i++) {  // by insertion
      int k = i;
      for (; k > 0 && t_.d[i] < t_.d[order[k - 1]]; k--) order[k] = order[k - 1];
      order[k] = i;
    }
    for (int k = 0; k < n_; k++) {
      values[k] = static_cast<T>(std::ldexp(t_.d[order[k]], exponent_));
      if (vectors) std::copy_n(vector(order[k]), n_, vectors + k * n_);
    }
  }

  const int n_, ld_;
  const bool with_vectors_;
  int exponent_ = 0;
  Tridiagonal t_;
  Rotations rotations_;
  alignas(64) T a_[kSmallEigh * kSmallEigh];  // ld_ <= kSmallEigh
  alignas(64) T z_[kSmallEighVectors * kSmallEighVectors];
};

bool eigh_float(const float* a, int n, bool by_rows, float* values, float* vectors) {
  return SmallEigh<float>::run(a, n, by_rows, values, vectors);
}
bool eigh_double(const double* a, int n, bool by_rows, double* values, double* vectors) {
  return SmallEigh<double>::run(a, n, by_rows, values, vectors);
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(eigh_float);
HWY_EXPORT(eigh_double);
bool small_eigh(const float* a, int n, bool by_rows, float* values, float* vectors) {
  return HWY_DYNAMIC_DISPATCH(eigh_float)(a, n, by_rows, values, vectors);
}
bool small_eigh(const double* a, int n, bool by_rows, double* values, double* vectors) {
  return HWY_DYNAMIC_DISPATCH(eigh_double)(a, n, by_rows, values, vectors);
}
}  // namespace taeda::cpu
#endif
