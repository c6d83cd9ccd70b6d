#include "kernels/cpu/rows/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

#include "base/interrupt.h"
#include "hwy/cache_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/rows.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<Tag<T>>;

// Folds f over n elements in four vectors, the tail padded with `fill`: f(acc, x, i).
template <class T, class F>
HWY_INLINE V<T> fold(const T* x, int64_t n, V<T> start, T fill, F f) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V<T> a = start, b = start, c = start, e = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = f(a, hn::LoadU(d, x + i), i);
    b = f(b, hn::LoadU(d, x + i + lanes), i + lanes);
    c = f(c, hn::LoadU(d, x + i + 2 * lanes), i + 2 * lanes);
    e = f(e, hn::LoadU(d, x + i + 3 * lanes), i + 3 * lanes);
  }
  for (; i + lanes <= n; i += lanes) a = f(a, hn::LoadU(d, x + i), i);
  if (i < n) {
    alignas(64) T tail[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(hn::Set(d, fill), d, tail);
    for (int64_t k = 0; i + k < n; k++) tail[k] = x[i + k];
    b = f(b, hn::Load(d, tail), -1);
  }
  return hn::Add(hn::Add(a, b), hn::Add(c, e));
}

// out[i] = f(i, load) over n elements, where load(p) reads at p + i; in the tail it
// reads zeros beyond them.
template <class T, class F>
HWY_INLINE void each(T* out, int64_t n, F f) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f([&](const T* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d, out + i);
  }
  if (i < n) {
    const auto load = [&](const T* p) HWY_ATTR { return load_n(p + i, n - i).raw; };
    store_n(out + i, Vec<T>(f(load)), n - i);
  }
}

template <class T>
HWY_INLINE T total(V<T> v) {
  return hn::GetLane(hn::SumOfLanes(Tag<T>(), v));
}

template <class T>
HWY_INLINE V<T> exp_of(V<T> x) {
  return exp(Vec<T>(x)).raw;
}

// One vector of float as two of double, lanes in order.
struct Widened {
  V<double> lower, upper;
};
HWY_INLINE Widened widen(V<float> v) {
  const hn::ScalableTag<double> wide;
#if HWY_TARGET == HWY_SCALAR
  return {hn::PromoteTo(wide, v), hn::Zero(wide)};
#else
  const hn::Half<Tag<float>> half;
  return {hn::PromoteTo(wide, hn::LowerHalf(half, v)), hn::PromoteTo(wide, hn::UpperHalf(half, v))};
#endif
}
struct WideSum {
  V<double> lower, upper;
  HWY_INLINE void add(V<float> v) {
    const Widened w = widen(v);
    lower = hn::Add(lower, w.lower);
    upper = hn::Add(upper, w.upper);
  }
};

template <class T>
struct Rows {
  // In double: long scans of floats stay exact to the last bit. Within a vector in a logarithm of
  // steps; a running sum of doubles is taken one by one, so that an overflow shows as in C.
  static double scan(T* out, const T* x, double total, int64_t n) {
    int64_t i = 0;
#if HWY_TARGET == HWY_AVX3
    if constexpr (std::is_same_v<T, float>) {
      const __m512i one = _mm512_setr_epi64(0, 0, 1, 2, 3, 4, 5, 6),
                    two = _mm512_setr_epi64(0, 0, 0, 1, 2, 3, 4, 5),
                    four = _mm512_setr_epi64(0, 0, 0, 0, 0, 1, 2, 3), last = _mm512_set1_epi64(7);
      __m512d before = _mm512_set1_pd(total);
      for (; i + 8 <= n; i += 8) {
        __m512d v = _mm512_cvtps_pd(_mm256_loadu_ps(x + i));
        v = _mm512_add_pd(v, _mm512_maskz_permutexvar_pd(0xfe, one, v));
        v = _mm512_add_pd(v, _mm512_maskz_permutexvar_pd(0xfc, two, v));
        v = _mm512_add_pd(v, _mm512_maskz_permutexvar_pd(0xf0, four, v));
        _mm256_storeu_ps(out + i, _mm512_cvtpd_ps(_mm512_add_pd(before, v)));
        before = _mm512_add_pd(before, _mm512_permutexvar_pd(last, v));
      }
      total = _mm512_cvtsd_f64(before);
    }
#elif HWY_TARGET == HWY_AVX2
    if constexpr (std::is_same_v<T, float>) {
      const __m256d zero = _mm256_setzero_pd();
      __m256d before = _mm256_set1_pd(total);
      for (; i + 4 <= n; i += 4) {
        __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + i));
        v = _mm256_add_pd(v, _mm256_unpacklo_pd(zero, v));
        v = _mm256_add_pd(v, _mm256_blend_pd(zero, _mm256_permute4x64_pd(v, 0x55), 0xc));
        _mm_storeu_ps(out + i, _mm256_cvtpd_ps(_mm256_add_pd(before, v)));
        before = _mm256_add_pd(before, _mm256_permute4x64_pd(v, 0xff));
      }
      total = _mm256_cvtsd_f64(before);
    }
#endif
    for (; i < n; i++) out[i] = static_cast<T>(total += static_cast<double>(x[i]));
    return total;
  }
  static void scan_columns(T* out, const T* x, double* totals, int64_t n) {
    const hn::ScalableTag<double> wide;
    const hn::Rebind<T, decltype(wide)> narrow;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(wide));
    // What Highway emulates turns infinities into the largest number.
    int64_t i = 0;
    for (; !TD_EMULATED && i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(narrow, x + i), sums = hn::LoadU(wide, totals + i);
      if constexpr (std::is_same_v<T, float>) {
        const auto sum = hn::Add(sums, hn::PromoteTo(wide, v));
        hn::StoreU(sum, wide, totals + i);
        hn::StoreU(hn::DemoteTo(narrow, sum), narrow, out + i);
      } else {
        const auto sum = hn::Add(sums, v);
        hn::StoreU(sum, wide, totals + i);
        hn::StoreU(sum, narrow, out + i);
      }
    }
    for (; i < n; i++) out[i] = static_cast<T>(totals[i] += static_cast<double>(x[i]));
  }
  template <bool kSkipNaN>
  static double sum(const T* x, int64_t n) {
    const Tag<T> d;
    const auto add = [](V<T> a, V<T> v, int64_t) HWY_ATTR {
      return hn::Add(a, kSkipNaN ? hn::IfThenZeroElse(hn::IsNaN(v), v) : v);
    };
    if constexpr (std::is_same_v<T, double>) {
      return total<T>(fold(x, n, hn::Zero(d), T(0), add));
    } else {
      const int64_t block = 32 * static_cast<int64_t>(hn::Lanes(d));
      const hn::ScalableTag<double> wide;
      WideSum sum{hn::Zero(wide), hn::Zero(wide)};
      int64_t i = 0;
      for (; i + block <= n; i += block) sum.add(fold(x + i, block, hn::Zero(d), T(0), add));
      sum.add(fold(x + i, n - i, hn::Zero(d), T(0), add));
      return total<double>(hn::Add(sum.lower, sum.upper));
    }
  }
  static T sum_abs(const T* x, int64_t n) {
    const Tag<T> d;
    return total<T>(fold(x, n, hn::Zero(d), T(0),
                         [](V<T> a, V<T> v, int64_t) HWY_ATTR { return hn::Add(a, hn::Abs(v)); }));
  }
  static int64_t count_nonzero(const T* x, int64_t n) {
    const Tag<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto zero = hn::Zero(d);
    int64_t zeros = 0, i = 0;
    for (; i + lanes <= n; i += lanes)
      zeros += static_cast<int64_t>(hn::CountTrue(d, hn::Eq(hn::LoadU(d, x + i), zero)));
    for (; i < n; i++) zeros += x[i] == T(0);
    return n - zeros;
  }
  static T sum_squares(const T* x, int64_t n) {
    const Tag<T> d;
    return total<T>(fold(x, n, hn::Zero(d), T(0),
                         [](V<T> a, V<T> v, int64_t) HWY_ATTR { return hn::MulAdd(v, v, a); }));
  }
  static void moments(const T* x, T center, int64_t n, T* first, T* second) {
    const Tag<T> d;
    const V<T> c = hn::Set(d, center);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    V<T> s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, q0 = s0, q1 = s0, q2 = s0, q3 = s0;
    const auto accumulate = [](V<T>& s, V<T>& q, V<T> u) HWY_ATTR {
      s = hn::Add(s, u);
      q = hn::MulAdd(u, u, q);
    };
    const auto at = [=](int64_t i) HWY_ATTR { return hn::Sub(hn::LoadU(d, x + i), c); };
    int64_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      accumulate(s0, q0, at(i));
      accumulate(s1, q1, at(i + lanes));
      accumulate(s2, q2, at(i + 2 * lanes));
      accumulate(s3, q3, at(i + 3 * lanes));
    }
    for (; i + lanes <= n; i += lanes) accumulate(s1, q1, at(i));
    if (i < n) {
      const V<T> u = hn::Sub(load_n(x + i, n - i).raw, c);
      accumulate(s2, q2, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), u));
    }
    *first = total<T>(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
    *second = total<T>(hn::Add(hn::Add(q0, q1), hn::Add(q2, q3)));
  }
  static T dot(const T* x, const T* y, int64_t n) { return dot_centered(x, T(0), y, n); }
  static T dot_centered(const T* x, T center, const T* y, int64_t n) {
    const Tag<T> d;
    const V<T> c = hn::Set(d, center);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), whole = n / lanes * lanes;
    V<T> v = fold(x, whole, hn::Zero(d), T(0), [=](V<T> a, V<T> u, int64_t i) HWY_ATTR {
      return hn::MulAdd(hn::Sub(u, c), hn::LoadU(d, y + i), a);
    });
    T rest = 0;
    for (int64_t i = whole; i < n; i++) rest += (x[i] - center) * y[i];
    return total<T>(v) + rest;
  }

  static void norm_sums(const T* gy, const T* x, T center, T scale, const T* weight, int64_t n,
                        T* sum_w, T* sum_b, double* first, double* second) {
    const Tag<T> d;
    const V<T> c = hn::Set(d, center), r = hn::Set(d, scale);
    V<T> s0 = hn::Zero(d), s1 = s0, q0 = s0, q1 = s0;
    const auto accumulate = [&](V<T>& s, V<T>& q, int64_t i, auto load, auto store) HWY_ATTR {
      const V<T> u = hn::Mul(hn::Sub(load(x + i), c), r), gy_i = load(gy + i),
                 g = hn::Mul(gy_i, load(weight + i));
      s = hn::Add(s, g);
      q = hn::MulAdd(g, u, q);
      store(sum_w + i, hn::MulAdd(gy_i, u, load(sum_w + i)));
      store(sum_b + i, hn::Add(load(sum_b + i), gy_i));
    };
    const auto load = [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); };
    const auto store = [&](T* p, V<T> v) HWY_ATTR { hn::StoreU(v, d, p); };
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      for (const T* next : {gy + n + i, x + n + i}) {
        __builtin_prefetch(next, 0, 2);  // into the second-level cache
        __builtin_prefetch(next + lanes, 0, 2);
      }
      accumulate(s0, q0, i, load, store);
      accumulate(s1, q1, i + lanes, load, store);
    }
    for (; i < n; i += lanes) {
      const int64_t m = std::min(lanes, n - i);
      if (m == lanes) {
        accumulate(s0, q0, i, load, store);
      } else {
        accumulate(
            s0, q0, i, [=](const T* p) HWY_ATTR { return load_n(p, m).raw; },
            [=](T* p, V<T> v) HWY_ATTR { store_n(p, Vec<T>(v), m); });
      }
    }
    *first += static_cast<double>(total<T>(hn::Add(s0, s1)));
    *second += static_cast<double>(total<T>(hn::Add(q0, q1)));
  }

  static T exp_row(T* out, const T* x, T shift, int64_t n) {
    const Tag<T> d;
    const V<T> s = hn::Set(d, shift);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    V<T> a = hn::Zero(d), b = a;
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const V<T> u = exp_of<T>(hn::Sub(hn::LoadU(d, x + i), s));
      const V<T> v = exp_of<T>(hn::Sub(hn::LoadU(d, x + i + lanes), s));
      hn::StoreU(u, d, out + i);
      hn::StoreU(v, d, out + i + lanes);
      a = hn::Add(a, u);
      b = hn::Add(b, v);
    }
    const int64_t rest = n - i;
    each(out + i, rest, [&](auto load) HWY_ATTR { return exp_of<T>(hn::Sub(load(x + i), s)); });
    T tail = 0;
    for (; i < n; i++) tail += out[i];
    return total<T>(hn::Add(a, b)) + tail;
  }
  static void exp_columns(T* out, const T* x, const T* shift, T* sum, int64_t n) {
    each(out, n, [&](auto load) HWY_ATTR { return exp_of<T>(hn::Sub(load(x), load(shift))); });
    each(sum, n, [&](auto load) HWY_ATTR { return hn::Add(load(sum), load(out)); });
  }
  static void subtract(T* out, const T* x, const T* y, int64_t n) {
    each(out, n, [&](auto load) HWY_ATTR { return hn::Sub(load(x), load(y)); });
  }
  static T exp_sum(const T* x, T shift, int64_t n) {
    const Tag<T> d;
    const Vec<T> s = shift, least = kIsFloat<T> ? -87 : -708;
    // What is less counts as `least`, which changes no sum with a term of 1: no branch is needed.
    return total<T>(fold(x, n, hn::Zero(d), -std::numeric_limits<T>::infinity(),
                         [=](V<T> a, V<T> v, int64_t) HWY_ATTR {
                           const auto [bits, k, r] = split_exponent(raw_max(least, Vec<T>(v) - s));
                           return hn::Add(a, add_exponent(expm1_reduced(r) + 1, bits).raw);
                         }));
  }
  static void affine(T* out, const T* x, T scale, T offset, int64_t n) {
    const Tag<T> d;
    const V<T> a = hn::Set(d, scale), b = hn::Set(d, offset);
    each(out, n, [&](auto load) HWY_ATTR { return hn::MulAdd(load(x), a, b); });
  }
  static void centered(T* out, const T* x, T center, T scale, T offset, int64_t n) {
    const Tag<T> d;
    const V<T> c = hn::Set(d, center), a = hn::Set(d, scale), b = hn::Set(d, offset);
    each(out, n, [&](auto load) HWY_ATTR { return hn::MulAdd(hn::Sub(load(x), c), a, b); });
  }
  static void affine_rows(T* out, const T* x, T center, T scale, const T* weight, const T* bias,
                          int64_t n) {
    const Tag<T> d;
    const V<T> c = hn::Set(d, center), a = hn::Set(d, scale);
    each(out, n, [&](auto load) HWY_ATTR {
      return hn::MulAdd(hn::Mul(hn::Sub(load(x), c), a), load(weight), load(bias));
    });
  }
  static void softmax_backward(T* out, const T* gy, const T* y, T s, int64_t n) {
    const Tag<T> d;
    const V<T> c = hn::Set(d, s);
    each(out, n, [&](auto load) HWY_ATTR { return hn::Mul(load(y), hn::Sub(load(gy), c)); });
  }
  static void log_softmax_backward(T* out, const T* gy, const T* y, T s, int64_t n) {
    const Tag<T> d;
    const V<T> c = hn::Set(d, s);
    each(out, n,
         [&](auto load) HWY_ATTR { return hn::NegMulAdd(exp_of<T>(load(y)), c, load(gy)); });
  }
  static void combine(T* out, const T* gy, const T* x, T a, T b, T c, int64_t n) {
    const Tag<T> d;
    const V<T> va = hn::Set(d, a), vb = hn::Set(d, b), vc = hn::Set(d, c);
    each(out, n,
         [&](auto load) HWY_ATTR { return hn::MulAdd(load(gy), va, hn::MulAdd(load(x), vb, vc)); });
  }
  static void combine_rows(T* out, const T* gy, const T* weight, const T* x, T a, T b, T c,
                           int64_t n) {
    const Tag<T> d;
    const V<T> va = hn::Set(d, a), vb = hn::Set(d, b), vc = hn::Set(d, c);
    each(out, n, [&](auto load) HWY_ATTR {
      return hn::MulAdd(hn::Mul(load(gy), load(weight)), va, hn::MulAdd(load(x), vb, vc));
    });
  }
  static void add(T* acc, const T* x, int64_t n) {
    each(acc, n, [&](auto load) HWY_ATTR { return hn::Add(load(acc), load(x)); });
  }
  static void add_rows(T* acc, const T* x, int64_t n, int64_t rows, int64_t stride) {
    for (; rows >= 8; rows -= 8, x += 8 * stride) {
      each(acc, n, [&](auto load) HWY_ATTR {
        const auto four = [&](const T* at) HWY_ATTR {
          return hn::Add(hn::Add(load(at), load(at + stride)),
                         hn::Add(load(at + 2 * stride), load(at + 3 * stride)));
        };
        return hn::Add(load(acc), hn::Add(four(x), four(x + 4 * stride)));
      });
    }
    for (; rows > 0; rows--, x += stride) add(acc, x, n);
  }
  static void add_scaled(T* acc, const T* x, T scale, T offset, const T* y, int64_t n) {
    const Tag<T> d;
    const V<T> a = hn::Set(d, scale), b = hn::Set(d, offset);
    each(acc, n, [&](auto load) HWY_ATTR {
      return hn::MulAdd(hn::MulAdd(load(x), a, b), load(y), load(acc));
    });
  }
  static void multiply(T* out, const T* x, const T* y, int64_t n) {
    each(out, n, [&](auto load) HWY_ATTR { return hn::Mul(load(x), load(y)); });
  }
  // The sums of N vectors of columns.
  template <int N>
  static HWY_INLINE void column_sums(V<T> (&sums)[N], const T* x, int64_t rows, int64_t stride) {
    const Tag<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
#pragma GCC unroll 8  // so that sums stay in registers
    for (int k = 0; k < N; k++) sums[k] = hn::Zero(d);
    for (int64_t i = 0; i < rows; i++) {
#pragma GCC unroll 8
      for (int k = 0; k < N; k++)
        sums[k] = hn::Add(sums[k], hn::LoadU(d, x + i * stride + k * lanes));
    }
  }
  // Calls visit(vector of sums, j) for whole vectors of columns, visit(sum, j) for the rest.
  template <class Visit>
  static HWY_INLINE void each_column_sum(const T* x, int64_t n, int64_t rows, int64_t stride,
                                         const Visit& visit) {
    int64_t j = vectors_of_columns<8>(0, x, n, rows, stride, visit);
    j = vectors_of_columns<4>(j, x, n, rows, stride, visit);
    j = vectors_of_columns<2>(j, x, n, rows, stride, visit);
    j = vectors_of_columns<1>(j, x, n, rows, stride, visit);
    if (j == n) return;
    Vec<T> sum(0);
    for (int64_t i = 0; i < rows; i++) sum = sum + load_n(x + i * stride + j, n - j);
    alignas(64) T rest[Vec<T>::size()];
    hn::Store(sum.raw, Tag<T>(), rest);
    for (int64_t k = 0; j < n; j++, k++) visit(rest[k], j);
  }
  // As many groups of N vectors from column j on as there are; returns the first column left.
  template <int N, class Visit>
  static HWY_INLINE int64_t vectors_of_columns(int64_t j, const T* x, int64_t n, int64_t rows,
                                               int64_t stride, const Visit& visit) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<T>()));
    for (; j + N * lanes <= n; j += N * lanes) {
      V<T> sums[N];
      column_sums(sums, x + j, rows, stride);
#pragma GCC unroll 8
      for (int k = 0; k < N; k++) visit(sums[k], j + k * lanes);
    }
    return j;
  }
  static void sum_columns(T* acc, const T* x, int64_t n, int64_t rows, int64_t stride) {
    each_column_sum(x, n, rows, stride, [=](auto sum, int64_t j) HWY_ATTR {
      if constexpr (std::is_same_v<decltype(sum), T>)
        acc[j] = sum;
      else
        hn::StoreU(sum, Tag<T>(), acc + j);
    });
  }
  static void add_columns(double* acc, const T* x, int64_t n, int64_t rows, int64_t stride) {
    const hn::ScalableTag<double> wide;
    each_column_sum(x, n, rows, stride, [=](auto sum, int64_t j) HWY_ATTR {
      if constexpr (std::is_same_v<decltype(sum), T>) {
        acc[j] += static_cast<double>(sum);
      } else if constexpr (std::is_same_v<T, double>) {
        hn::StoreU(hn::Add(hn::LoadU(wide, acc + j), sum), wide, acc + j);
      } else {
        const int64_t lanes = static_cast<int64_t>(hn::Lanes(wide));
        const Widened w = widen(sum);
        hn::StoreU(hn::Add(hn::LoadU(wide, acc + j), w.lower), wide, acc + j);
        if constexpr (Vec<float>::size() > 1)
          hn::StoreU(hn::Add(hn::LoadU(wide, acc + j + lanes), w.upper), wide, acc + j + lanes);
      }
    });
  }
  static void moments_columns(T* first, T* second, const T* x, const T* center, int64_t n,
                              int64_t rows, int64_t stride) {
    const Tag<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      V<T> s = hn::Zero(d), q = s;
      const V<T> c = hn::LoadU(d, center + j);
      for (int64_t i = 0; i < rows; i++) {
        const V<T> u = hn::Sub(hn::LoadU(d, x + i * stride + j), c);
        s = hn::Add(s, u);
        q = hn::MulAdd(u, u, q);
      }
      hn::StoreU(s, d, first + j);
      hn::StoreU(q, d, second + j);
    }
    for (; j < n; j++) {
      T s = 0, q = 0;
      for (int64_t i = 0; i < rows; i++) {
        const T u = x[i * stride + j] - center[j];
        s += u;
        q += u * u;
      }
      first[j] = s;
      second[j] = q;
    }
  }
  static void dots_columns(T* first, T* second, const T* gy, const T* x, const T* center, int64_t n,
                           int64_t rows, int64_t stride) {
    const Tag<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      V<T> s = hn::Zero(d), q = s;
      const V<T> c = hn::LoadU(d, center + j);
      for (int64_t i = 0; i < rows; i++) {
        const V<T> g = hn::LoadU(d, gy + i * stride + j);
        s = hn::Add(s, g);
        q = hn::MulAdd(g, hn::Sub(hn::LoadU(d, x + i * stride + j), c), q);
      }
      hn::StoreU(s, d, first + j);
      hn::StoreU(q, d, second + j);
    }
    for (; j < n; j++) {
      T s = 0, q = 0;
      for (int64_t i = 0; i < rows; i++) {
        s += gy[i * stride + j];
        q += gy[i * stride + j] * (x[i * stride + j] - center[j]);
      }
      first[j] = s;
      second[j] = q;
    }
  }
};

template <class T>
struct Order {
  static constexpr bool kFloat = std::is_floating_point_v<T>;
  using D = Tag<T>;
  template <bool kMax>
  static HWY_INLINE V<T> pick(V<T> a, V<T> b) {
    if constexpr (kMax)
      return hn::Max(a, b);
    else
      return hn::Min(a, b);
  }
  // NaN in either wins.
  template <bool kMax>
  static HWY_INLINE V<T> pick_nan(V<T> a, V<T> b) {
    V<T> m = pick<kMax>(a, b);
    if constexpr (kFloat) {
      m = hn::IfThenElse(hn::IsNaN(b), b, m);
      m = hn::IfThenElse(hn::IsNaN(a), a, m);
    }
    return m;
  }
  template <bool kMax>
  static T extreme(const T* x, int64_t n) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    if (n < lanes) {
      T best = x[0];
      for (int64_t i = 1; i < n; i++) {
        if ((kMax ? x[i] > best : x[i] < best) || x[i] != x[i]) best = x[i];
        if (best != best) return best;
      }
      return best;
    }
    V<T> a = hn::LoadU(d, x), b = a, c = a, e = a;
    [[maybe_unused]] auto nan = hn::Lt(a, a);  // none yet
    int64_t i = 0;
    const auto step = [&](V<T>& acc, int64_t at) HWY_ATTR {
      const V<T> v = hn::LoadU(d, x + at);
      acc = pick<kMax>(acc, v);
      if constexpr (kFloat) nan = hn::Or(nan, hn::IsNaN(v));
    };
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      step(a, i);
      step(b, i + lanes);
      step(c, i + 2 * lanes);
      step(e, i + 3 * lanes);
    }
    for (; i + lanes <= n; i += lanes) step(a, i);
    if (i < n) step(b, n - lanes);  // the last vector overlaps the one before
    if constexpr (kFloat) {
      if (!hn::AllFalse(d, nan)) return std::numeric_limits<T>::quiet_NaN();
    }
    const V<T> best = pick<kMax>(pick<kMax>(a, b), pick<kMax>(c, e));
    if constexpr (sizeof(T) >= 4) {
      return hn::GetLane(kMax ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best));
    } else {
      alignas(64) T lane[HWY_MAX_BYTES / sizeof(T)];
      hn::Store(best, d, lane);
      return kMax ? *std::max_element(lane, lane + lanes) : *std::min_element(lane, lane + lanes);
    }
  }
  template <bool kMax>
  static void columns(T* acc, const T* x, int64_t n, int64_t rows, int64_t stride) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t j = 0;
    for (int64_t i = 0; i < rows; i++) {  // row after row, as memory is fetched
      for (j = 0; j + lanes <= n; j += lanes) {
        hwy::Prefetch(x + i * stride + j + n);  // these rows' next columns
        hn::StoreU(pick_nan<kMax>(hn::LoadU(d, acc + j), hn::LoadU(d, x + i * stride + j)), d,
                   acc + j);
      }
    }
    for (; j < n; j++) {
      for (int64_t i = 0; i < rows && acc[j] == acc[j]; i++) {
        const T v = x[i * stride + j];
        if ((kMax ? v > acc[j] : v < acc[j]) || v != v) acc[j] = v;
      }
    }
  }
  static int64_t find(const T* x, T value, int64_t n) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const V<T> wanted = hn::Set(d, value);
    const bool nan = value != value;
    int64_t i = 0;
    if (!nan) {  // four vectors a branch
      const auto hits = [&](int64_t at) HWY_ATTR { return hn::Eq(hn::LoadU(d, x + at), wanted); };
      for (; i + 4 * lanes <= n; i += 4 * lanes) {
        const auto any = hn::Or(hn::Or(hits(i), hits(i + lanes)),
                                hn::Or(hits(i + 2 * lanes), hits(i + 3 * lanes)));
        if (!hn::AllFalse(d, any)) break;
      }
    }
    for (; i + lanes <= n; i += lanes) {
      const V<T> v = hn::LoadU(d, x + i);
      auto hit = hn::Eq(v, wanted);
      if constexpr (kFloat) {
        if (nan) hit = hn::IsNaN(v);
      }
      const auto at = hn::FindFirstTrue(d, hit);
      if (at >= 0) return i + at;
    }
    for (; i < n; i++) {
      if (x[i] == value || (nan && x[i] != x[i])) return i;
    }
    return n;
  }
  // Whether v replaces `best`: it is beyond it, or the first NaN.
  template <bool kMax>
  static HWY_INLINE auto beats(V<T> v, V<T> best) {
    if constexpr (kFloat) {
      const auto no = kMax ? hn::Le(v, best) : hn::Ge(v, best);
      return hn::AndNot(no, hn::Eq(best, best));
    } else {
      return kMax ? hn::Lt(best, v) : hn::Lt(v, best);
    }
  }
  template <bool kMax>
  static void arg_best(T* best, OrderIndex<T>* index, const T* x, int64_t n, int64_t rows,
                       int64_t stride) {
    using P = OrderIndex<T>;
    const D d;
    const hn::Rebind<P, D> dp;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    std::copy_n(x, n, best);
    std::fill_n(index, n, P(0));
    int64_t j = 0;
    for (int64_t i = 1; i < rows; i++) {
      const auto here = hn::Set(dp, static_cast<P>(i));
      for (j = 0; j + lanes <= n; j += lanes) {
        hwy::Prefetch(x + i * stride + j + n);  // these rows' next columns
        const V<T> v = hn::LoadU(d, x + i * stride + j), b = hn::LoadU(d, best + j);
        const auto better = beats<kMax>(v, b);
        hn::StoreU(hn::IfThenElse(better, v, b), d, best + j);
        hn::StoreU(hn::IfThenElse(hn::RebindMask(dp, better), here, hn::LoadU(dp, index + j)), dp,
                   index + j);
      }
    }
    for (; j < n && rows > 1; j++) {
      for (int64_t i = 1; i < rows; i++) {
        const T v = x[i * stride + j], b = best[j];
        if ((kMax ? v <= b : v >= b) || b != b) continue;
        best[j] = v;
        index[j] = static_cast<P>(i);
      }
    }
  }
  static T max(const T* x, int64_t n) { return extreme<true>(x, n); }
  static T min(const T* x, int64_t n) { return extreme<false>(x, n); }
  static constexpr OrderTable<T> kTable{
      max, min, columns<true>, columns<false>, find, arg_best<true>, arg_best<false>};
};

// A row may be a whole tensor: a long one is worked on in slices, between which it is looked for an
// interrupt. Not within the loops: around a call their vectors would have to leave the registers.
constexpr int64_t kSlice = 1 << 20;

template <class A>
A from(A argument, int64_t i) {
  if constexpr (std::is_pointer_v<A>)
    return argument + i;
  else
    return argument;
}
// What kFunction(..., n), whose pointers are to rows, gives for slices: nothing, or summands.
template <auto kFunction, class Type = decltype(kFunction)>
struct Long;
template <auto kFunction, class Result, class... Args>
struct Long<kFunction, Result (*)(Args...)> {
  static Result run(Args... args) {
    const int64_t n = std::get<sizeof...(Args) - 1>(std::tie(args...));
    if (n <= kSlice) [[likely]]
      return kFunction(args...);
    return slices(n, args...);
  }

 private:
  HWY_NOINLINE static Result slices(int64_t n, Args... args) {
    if constexpr (std::is_void_v<Result>) {
      for (int64_t i = 0; i < n; i += kSlice) slice(i, n, args...);
    } else {
      Result sum = 0;
      for (int64_t i = 0; i < n; i += kSlice) sum += slice(i, n, args...);
      return sum;
    }
  }
  static Result slice(int64_t i, int64_t n, Args... args) {
    check_interrupt();
    std::tuple<Args...> part(from(args, i)...);
    std::get<sizeof...(Args) - 1>(part) = std::min(kSlice, n - i);
    return std::apply(kFunction, part);
  }
};

// The largest or the smallest, NaN if any is.
template <bool kMax, class T>
T row_extreme(const T* x, int64_t n) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (n == 0) return kMax ? -kInfinity : kInfinity;
  T best = Order<T>::template extreme<kMax>(x, std::min(kSlice, n));
  for (int64_t i = kSlice; i < n && best == best; i += kSlice) {
    check_interrupt();
    const T next = Order<T>::template extreme<kMax>(x + i, std::min(kSlice, n - i));
    if (next != next || (kMax ? next > best : next < best)) best = next;
  }
  return best;
}
template <class T>
T row_max_abs(const T* x, int64_t n) {
  if (n == 0) return 0;
  const T high = row_extreme<true>(x, n), low = row_extreme<false>(x, n);
  return high != high ? high : std::max(std::abs(high), std::abs(low));
}

template <class T>
const RowTable<T>* rows() {
  using R = Rows<T>;
  static constexpr RowTable<T> table{R::scan,
                                     R::scan_columns,
                                     Long<&R::template sum<false>>::run,
                                     Long<&R::template sum<true>>::run,
                                     Long<&R::sum_abs>::run,
                                     R::count_nonzero,
                                     Long<&R::sum_squares>::run,
                                     R::moments,
                                     Long<&R::dot>::run,
                                     Long<&R::dot_centered>::run,
                                     R::norm_sums,
                                     row_extreme<true, T>,
                                     row_extreme<false, T>,
                                     row_max_abs<T>,
                                     Long<&R::exp_row>::run,
                                     Long<&R::exp_sum>::run,
                                     R::exp_columns,
                                     Long<&R::subtract>::run,
                                     Long<&R::affine>::run,
                                     Long<&R::centered>::run,
                                     Long<&R::affine_rows>::run,
                                     Long<&R::softmax_backward>::run,
                                     Long<&R::log_softmax_backward>::run,
                                     Long<&R::combine>::run,
                                     Long<&R::combine_rows>::run,
                                     Long<&R::add>::run,
                                     Long<&R::add_scaled>::run,
                                     Long<&R::multiply>::run,
                                     R::add_rows,
                                     R::sum_columns,
                                     R::add_columns,
                                     R::moments_columns,
                                     R::dots_columns};
  return &table;
}
const RowTable<float>* rows_f32() { return rows<float>(); }
const RowTable<double>* rows_f64() { return rows<double>(); }
const OrderTable<float>* order_f32() { return &Order<float>::kTable; }
const OrderTable<double>* order_f64() { return &Order<double>::kTable; }
const OrderTable<uint8_t>* order_u8() { return &Order<uint8_t>::kTable; }
const OrderTable<int8_t>* order_i8() { return &Order<int8_t>::kTable; }
const OrderTable<int16_t>* order_i16() { return &Order<int16_t>::kTable; }
const OrderTable<int32_t>* order_i32() { return &Order<int32_t>::kTable; }
const OrderTable<int64_t>* order_i64() { return &Order<int64_t>::kTable; }

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

#define TD_TABLE(function, Table, type, name)                        \
  HWY_EXPORT(name);                                                  \
  template <>                                                        \
  const Table<type>& function<type>() {                              \
    static const Table<type>& table = *HWY_DYNAMIC_DISPATCH(name)(); \
    return table;                                                    \
  }
TD_TABLE(row_table, RowTable, float, rows_f32)
TD_TABLE(row_table, RowTable, double, rows_f64)
TD_TABLE(order_table, OrderTable, float, order_f32)
TD_TABLE(order_table, OrderTable, double, order_f64)
TD_TABLE(order_table, OrderTable, uint8_t, order_u8)
TD_TABLE(order_table, OrderTable, int8_t, order_i8)
TD_TABLE(order_table, OrderTable, int16_t, order_i16)
TD_TABLE(order_table, OrderTable, int32_t, order_i32)
TD_TABLE(order_table, OrderTable, int64_t, order_i64)
#undef TD_TABLE

}  // namespace taeda::cpu
#endif
