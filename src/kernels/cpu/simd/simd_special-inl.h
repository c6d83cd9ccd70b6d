// Special functions on Vec<T> by fits in double precision: included by simd_math-inl.h, once per
// instruction set.
#if defined(TAEDA_KERNELS_CPU_SIMD_SPECIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_KERNELS_CPU_SIMD_SPECIAL_INL_H_
#undef TAEDA_KERNELS_CPU_SIMD_SPECIAL_INL_H_
#else
#define TAEDA_KERNELS_CPU_SIMD_SPECIAL_INL_H_
#endif

#include "kernels/cpu/simd/bessel_fits.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// c[0] + c[1] t + ..., even and odd powers apart.
template <size_t n>
TD_FN Vec<double> series(Vec<double> t, const double (&c)[n]) {
  using V = Vec<double>;
  const V z = t * t;
  V even(n % 2 ? c[n - 1] : 0.0), odd(0);
#pragma GCC unroll 16
  for (size_t i = n / 2 * 2; i >= 2; i -= 2) {
    even = fma(even, z, V(c[i - 2]));
    odd = fma(odd, z, V(c[i - 1]));
  }
  return fma(odd, t, even);
}

// near(x) up to the limit, far(x) beyond it and for NaN.
template <class Near, class Far>
TD_FN Vec<double> by_size(Vec<double> x, double limit, const Near& near, const Far& far) {
  const Mask<double> within = x <= limit;
  if (all(within)) return near(x);
  if (!any(within)) return far(x);
  return select(within, near(x), far(x));
}

// I_n(x) e^-|x| of orders 0 and 1.
TD_FN Vec<double> i0e(Vec<double> x) {
  using V = Vec<double>;
  return by_size(
      abs(x), 8,
      [](V v) HWY_ATTR { return series(v * v * V(0.25), bessel_fits::kI0Series.c) * exp(-v); },
      [](V v) HWY_ATTR { return series(V(16) / v - V(1), bessel_fits::kScaledI0Far) / sqrt(v); });
}
TD_FN Vec<double> i1e(Vec<double> x) {
  using V = Vec<double>;
  const V y = by_size(
      abs(x), 8,
      [](V v) HWY_ATTR {
        return series(v * v * V(0.25), bessel_fits::kI1Series.c) * (v * V(0.5) * exp(-v));
      },
      [](V v) HWY_ATTR { return series(V(16) / v - V(1), bessel_fits::kScaledI1Far) / sqrt(v); });
  return copysign(y, x);
}
TD_FN Vec<float> i0e(Vec<float> x) {
  using V = Vec<double>;
  const auto f = [](V size) HWY_ATTR {
    return by_size(
        size, 4,
        [](V v) HWY_ATTR { return series(fma(v, V(0.5), V(-1)), bessel_fits::kFloatI0Near); },
        [](V v) HWY_ATTR {
          const V i = V(1) / v;
          return series(fma(i, V(8), V(-1)), bessel_fits::kFloatI0Far) * sqrt(i);
        });
  };
  return through_double(f, abs(x));
}
TD_FN Vec<float> i1e(Vec<float> x) {
  using V = Vec<double>;
  const auto f = [](V size) HWY_ATTR {
    return by_size(
        size, 4,
        [](V v) HWY_ATTR { return v * series(fma(v, V(0.5), V(-1)), bessel_fits::kFloatI1Near); },
        [](V v) HWY_ATTR {
          const V i = V(1) / v;
          return series(fma(i, V(8), V(-1)), bessel_fits::kFloatI1Far) * sqrt(i);
        });
  };
  return copysign(through_double(f, abs(x)), x);
}

// e^(x^2) erfc(x): a fit up to 27, then the asymptotic series [A&S 7.1.23]; 2 e^(x^2) less that of
// -x for negative x, the rounding error of x^2 made up for.
TD_FN Vec<double> erfcx_positive(Vec<double> x) {
  using V = Vec<double>;
  return by_size(
      x, 27, [](V v) HWY_ATTR { return erfc_scaled(v); },
      [](V v) HWY_ATTR {
        const V i = V(1) / v, r = i * i * V(0.5);
        const V p = polynomial(r, 1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0);
        return i * p * V(0.56418958354775629);
      });
}
TD_FN Vec<double> erfcx(Vec<double> x) {
  using V = Vec<double>;
  const V y = erfcx_positive(abs(x));
  const Mask<double> negative = x < 0;
  if (!any(negative)) return y;
  const V square = x * x, e = exp(square);
  const V power = select(square < 709, fma(fma(x, x, -square), e, e), e);
  return select(negative, power * V(2) - y, y);
}

// sqrt(2) times the inverse of erf at 2p - 1; 1 - (2p - 1)^2 = 4 p (1 - p) has no cancellation.
TD_FN Vec<double> ndtri(Vec<double> p) {
  using V = Vec<double>;
  const V q = p - 0.5;
  const V y = q * V(2.8284271247461903) * erfinv_ratio(-log(p * (V(1) - p) * V(4)));
  const Mask<double> tail = (p >= 0) & (p < 1e-15);  // beyond the ratio's fit
  const V ended = select(p == 1, V(kInf), y);
  if (!any(tail)) return ended;
  return select(tail, map_lanes([](double v) { return special::ndtri(v); }, p), ended);
}
TD_FN Vec<float> ndtri(Vec<float> x) {
  return map_lanes([](float a) { return special::ndtri(a); }, x);
}

TD_FN Vec<float> erfcx(Vec<float> x) {
  return through_double([](Vec<double> v) HWY_ATTR { return erfcx(v); }, x);
}

// --- incomplete gamma functions: special.cc says how, for one number
// ------------------------------------------------------------------------------------------------

// x^a e^-x / Gamma(a + 1).
TD_FN Vec<double> gamma_term(Vec<double> a, Vec<double> x) {
  using V = Vec<double>;
  const Mask<double> large = a >= 10;
  V y = 0;
  if (!all(large)) y = exp(fma(a, log(x), -x) - lgamma_positive<true>(a + 1));
  if (!any(large)) return y;
  const V u = (x - a) / a, r = V(1) / (a * a);
  const V rest = polynomial(r, 1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188) / a;
  const V far = exp(fma(a, log1p(u) - u, -rest)) / sqrt(a * V(6.283185307179586));
  return select(large, far, y);
}
// The power series' sum in lanes `where`.
TD_FN Vec<double> gamma_series(Vec<double> a, Vec<double> x, Mask<double> where, double precision) {
  using V = Vec<double>;
  x = select(where, x, V(0));
  V term = 1, sum = 1;
  for (V n = a + 1; any(term > sum * V(precision)); n = n + 1) {
    term = term * (x / n);
    sum = sum + term;
  }
  return sum;
}
// Q over gamma_term(a, x) a, by Lentz' algorithm in lanes `where`.
TD_FN Vec<double> gamma_fraction(Vec<double> a, Vec<double> x, Mask<double> where,
                                 double precision) {
  using V = Vec<double>;
  a = select(where, a, V(1));
  V b = select(where, x + 1 - a, V(2)), c = 0x1p104, d = V(1) / b, product = d;
  Mask<double> more = where;
  for (double n = 1; any(more) && n < 1e5; n++) {
    const V numerator = (a - n) * V(n);
    b = b + 2;
    d = V(1) / fma(numerator, d, b);
    c = b + numerator / c;
    const V factor = c * d;
    product = product * factor;
    more = more & (abs(factor - 1) > V(precision));
  }
  return product;
}
// Q for a <= x <= 1.1.
TD_FN Vec<double> gamma_small(Vec<double> a, Vec<double> x) {
  using V = Vec<double>;
  V term = 1, sum = 0;
  for (double n = 1; n < 100; n++) {
    term = term * (x * V(-1 / n));
    const V next = term / (a + n);
    sum = sum + next;
    if (!any(abs(next) > abs(sum) * V(0x1p-54))) break;
  }
  const V tiny = a * fma(a, V(0.8224670334241132), V(-0.57721566490153286));
  const V power = fma(a, log(x), -select(a < 1e-6, tiny, lgamma_positive<true>(a + 1)));
  return -expm1(power) - exp(power) * a * sum;
}
template <bool upper>
HWY_NOINLINE Vec<double> incomplete_gamma(Vec<double> a, Vec<double> x, double precision) {
  using V = Vec<double>;
  const Mask<double> ordinary = (a > 0) & (a <= 1e6) & (x > 0) & (x < kInf);
  if (!all(ordinary))
    return map_lanes(
        [](double p, double q) { return upper ? special::igammac(p, q) : special::igamma(p, q); },
        a, x);
  const Mask<double> below = x < a, short_x = x <= 1.1;
  const Mask<double> fraction = !(below | short_x), small = short_x & !below;
  const Mask<double> summed = upper ? below : below | short_x;
  const V term = gamma_term(a, x);
  V y = 0;
  if (any(summed)) {
    const V p = term * gamma_series(a, x, summed, precision);
    y = upper ? V(1) - p : p;
  }
  if (any(fraction)) {
    const V q = term * a * gamma_fraction(a, x, fraction, precision);
    y = select(fraction, upper ? q : V(1) - q, y);
  }
  if (upper && any(small)) y = select(small, gamma_small(select(small, a, V(1)), x), y);
  return y;
}
TD_FN Vec<double> igamma(Vec<double> a, Vec<double> x) {
  return incomplete_gamma<false>(a, x, 0x1p-52);
}
TD_FN Vec<double> igammac(Vec<double> a, Vec<double> x) {
  return incomplete_gamma<true>(a, x, 0x1p-52);
}
inline constexpr double kFloatPrecision = 1e-10;  // of terms left out
TD_FN Vec<float> igamma(Vec<float> a, Vec<float> x) {
  return through_double([](Vec<double> p, Vec<double> q)
                            HWY_ATTR { return incomplete_gamma<false>(p, q, kFloatPrecision); },
                        a, x);
}
TD_FN Vec<float> igammac(Vec<float> a, Vec<float> x) {
  return through_double([](Vec<double> p, Vec<double> q)
                            HWY_ATTR { return incomplete_gamma<true>(p, q, kFloatPrecision); },
                        a, x);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TAEDA_KERNELS_CPU_SIMD_SPECIAL_INL_H_
