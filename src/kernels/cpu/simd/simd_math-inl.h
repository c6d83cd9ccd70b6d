// Elementary functions on Vec<T>: included by simd.h, once per instruction set.
//
// Polynomials are minimax fits made for this file; the comment beside each gives its error. Where
// an argument leaves the range that the vector code is good for (huge angles, poles), all lanes go
// through the C library instead.
#if defined(TAEDA_KERNELS_CPU_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_KERNELS_CPU_SIMD_MATH_INL_H_
#undef TAEDA_KERNELS_CPU_SIMD_MATH_INL_H_
#else
#define TAEDA_KERNELS_CPU_SIMD_MATH_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd/power_tables.h"
#include "kernels/cpu/simd/special.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

template <class T>
inline constexpr bool kIsFloat = std::is_same_v<T, float>;
template <class T>
inline constexpr T kInfOf = std::numeric_limits<T>::infinity();

// c0 + c1 x + c2 x^2 + ...
template <class T, class... C>
TD_FN Vec<T> polynomial(Vec<T> x, double c0, C... rest) {
  if constexpr (sizeof...(rest) == 0)
    return Vec<T>(c0);
  else
    return fma(polynomial(x, rest...), x, Vec<T>(c0));
}

// The same in pairs, with z = x^2: half as many steps that wait for each other.
template <class T, class... C>
TD_FN Vec<T> paired_polynomial(Vec<T> x, Vec<T> z, double c0, double c1, C... rest) {
  if constexpr (sizeof...(rest) < 2)
    return polynomial(x, c0, c1, rest...);
  else
    return fma(paired_polynomial(x, z, rest...), z, polynomial(x, c0, c1));
}

// The same for long ones, all but the last step in four sums of every fourth power: what waits for
// each other is that much shorter.
template <class T, class... C>
TD_FN Vec<T> long_polynomial(Vec<T> x, double c0, C... c) {
  constexpr size_t n = sizeof...(C);
  const double terms[n] = {c...};
  const Vec<T> z = x * x, w = z * z;
  Vec<T> sums[4];
#pragma GCC unroll 4
  for (size_t k = 0; k < 4; k++) {
    const size_t last = (n - 1 - k) / 4 * 4 + k;
    sums[k] = Vec<T>(terms[last]);
#pragma GCC unroll 16
    for (size_t i = last; i >= 4; i -= 4) sums[k] = fma(sums[k], w, Vec<T>(terms[i - 4]));
  }
  const Vec<T> sum = fma(fma(sums[3], x, sums[2]), z, fma(sums[1], x, sums[0]));
  return fma(sum, x, Vec<T>(c0));
}

// Adding this to a number of modest size rounds it to an integer, which then stands in the lowest
// bits.
template <class T>
inline constexpr T kRounder = kIsFloat<T> ? T(0x1.8p23) : T(0x1.8p52);
template <class T>
inline constexpr int kMantissaBits = kIsFloat<T> ? 23 : 52;

// 2^n for integral n whose result is normal.
template <class T>
TD_FN Vec<T> power_of_two(Vec<T> n) {
  const typename Vec<T>::Tag d;
  const typename Vec<T>::Bits bits;
  const auto exponent = hn::ShiftLeft<kMantissaBits<T>>(hn::BitCast(bits, (n + kRounder<T>).raw));
  return hn::BitCast(d, hn::Add(exponent, hn::BitCast(bits, hn::Set(d, T(1)))));
}

// x with a sign that the mantissa's bit `kBit` of `from` decides: minus where it is set.
template <int kBit, class T>
TD_FN Vec<T> flip_sign(Vec<T> x, Vec<T> from) {
  const typename Vec<T>::Tag d;
  const typename Vec<T>::Bits bits;
  const auto shifted =
      hn::ShiftLeft<static_cast<int>(sizeof(T)) * 8 - 1 - kBit>(hn::BitCast(bits, from.raw));
  return hn::Xor(x.raw, hn::And(hn::BitCast(d, shifted), hn::SignBit(d)));
}

// --- exponentials
// -------------------------------------------------------------------------------------------------

// e^r - 1 for |r| <= log(2)/2; relative error 5e-11 (float), 4e-18 (double).
template <class T>
TD_FN Vec<T> expm1_reduced(Vec<T> r) {
  Vec<T> p;
  if constexpr (kIsFloat<T>) {
    p = polynomial(r, 0.500000006803694329, 0.166666658647332297, 0.0416662936359417355,
                   0.00833349764034527266, 0.00139447584952914774, 0.000197902622532329126);
  } else {
    p = polynomial(r, 0.500000000000000004, 0.166666666666666836, 0.041666666666666089,
                   0.00833333333331691633, 0.00138888888891173017, 0.000198412698966825745,
                   2.48015869245366103e-5, 2.75572345573221219e-6, 2.75575828490465429e-7,
                   2.51121449584025736e-8, 2.0826521076944229e-9);
  }
  return fma(r * r, p, r);
}

// x = n log(2) + r; n also stands in the lowest bits of `bits`.
template <class T>
struct ExpParts {
  Vec<T> bits, n, r;
};
template <class T>
TD_FN ExpParts<T> split_exponent(Vec<T> x) {
  const Vec<T> bits = fma(x, 1.4426950408889634, kRounder<T>), n = bits - kRounder<T>;
  const double hi = kIsFloat<T> ? 0x1.62e4p-1 : 0x1.62e42feep-1;
  const double lo = kIsFloat<T> ? 0x1.7f7d1cp-20 : 0x1.a39ef35793c76p-33;
  return {bits, n, fma(n, -lo, fma(n, -hi, x))};
}

// p 2^n for a normal p and a normal result, n in the lowest bits of `bits`.
template <class T>
TD_FN Vec<T> add_exponent(Vec<T> p, Vec<T> bits) {
  const typename Vec<T>::Bits d;
  const auto exponent = hn::ShiftLeft<kMantissaBits<T>>(hn::BitCast(d, bits.raw));
  return hn::BitCast(typename Vec<T>::Tag(), hn::Add(hn::BitCast(d, p.raw), exponent));
}

// p 2^n, in two steps so that results may be denormal or infinite.
template <class T>
TD_FN Vec<T> scale(Vec<T> p, Vec<T> n) {
  const Vec<T> half = fma(n, 0.5, kRounder<T>) - kRounder<T>;
  return p * power_of_two(half) * power_of_two(n - half);
}

// The order of arguments lets a NaN through.
template <class T>
TD_FN Vec<T> clamp_number(Vec<T> x, double lo, double hi) {
  return raw_max(Vec<T>(lo), raw_min(Vec<T>(hi), x));
}

// Where the result may be denormal or infinite, or x is NaN.
template <class T>
HWY_NOINLINE Vec<T> exp_extreme(Vec<T> x) {
  const auto [bits, n, r] =
      split_exponent(clamp_number(x, kIsFloat<T> ? -104 : -746, kIsFloat<T> ? 89 : 710));
  return scale(expm1_reduced(r) + 1, n);
}
template <class T>
TD_FN Vec<T> exp(Vec<T> x) {
  if (!all(abs(x) < (kIsFloat<T> ? 87 : 708))) return exp_extreme(x);
  const auto [bits, n, r] = split_exponent(x);
  return add_exponent(expm1_reduced(r) + 1, bits);
}

template <class T>
TD_FN Vec<T> exp2(Vec<T> x) {
  x = clamp_number(x, kIsFloat<T> ? -151 : -1077, kIsFloat<T> ? 129 : 1025);
  const Vec<T> n = round(x);
  return scale(expm1_reduced((x - n) * 0.69314718055994531) + 1, n);
}

template <class T>
TD_FN Vec<T> expm1(Vec<T> x) {
  const auto [bits, n, r] =
      split_exponent(clamp_number(x, kIsFloat<T> ? -20 : -40, kIsFloat<T> ? 89 : 710));
  const Vec<T> half = power_of_two(n - 1);  // 2^n itself may overflow where the result does not
  return copysign(Vec<T>(2) * fma(half, expm1_reduced(r), half - 0.5), x);
}

// --- logarithms
// ---------------------------------------------------------------------------------------------------

// x = 2^k m with m in [sqrt(1/2), sqrt(2)), for positive finite x.
template <class T>
struct BinaryParts {
  Vec<T> k, m;
};
template <class T>
TD_FN BinaryParts<T> split_binary(Vec<T> x) {
  using I = std::conditional_t<kIsFloat<T>, int32_t, int64_t>;
  const typename Vec<T>::Tag d;
  const typename Vec<T>::Bits bits;
  const Mask<T> tiny = x < std::numeric_limits<T>::min();
  x = select(tiny, x * (kIsFloat<T> ? 0x1p25 : 0x1p54), x);

  const I sqrt_half = kIsFloat<T> ? I(0x3f3504f3) : I(0x3fe6a09e667f3bcd);
  const I one = kIsFloat<T> ? I(0x3f800000) : I(0x3ff0000000000000);
  const auto shifted = hn::Add(hn::BitCast(bits, x.raw), hn::Set(bits, one - sqrt_half));
  const auto exponent =
      hn::Sub(hn::ShiftRight<kMantissaBits<T>>(shifted), hn::Set(bits, one >> kMantissaBits<T>));
  const auto mantissa = hn::And(shifted, hn::Set(bits, (I(1) << kMantissaBits<T>)-1));
  const Vec<T> m = hn::BitCast(d, hn::Add(mantissa, hn::Set(bits, sqrt_half)));
  const auto rounder = hn::BitCast(bits, hn::Set(d, kRounder<T>));
  Vec<T> k = Vec<T>(hn::BitCast(d, hn::Add(exponent, rounder))) - kRounder<T>;
  return {select(tiny, k - (kIsFloat<T> ? 25 : 54), k), m};
}

// x = 2^k m as above: gives k and log(m).
template <class T>
struct LogParts {
  Vec<T> k, log_m;
};
template <class T>
TD_FN LogParts<T> split_log(Vec<T> x) {
  const auto [k, m] = split_binary(x);
  // log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)), s = f / (2 + f); error of R 1e-9 (float), 3e-16
  // (double).
  const Vec<T> f = m - 1, s = f / (f + 2), z = s * s, half_square = f * f * 0.5;
  Vec<T> r;
  if constexpr (kIsFloat<T>) {
    r = z * polynomial(z, 0.666666665526073911, 0.400001230912124188, 0.2855069894616032,
                       0.233334187508363112);
  } else {
    r = z * polynomial(z, 0.666666666666666975, 0.399999999998978891, 0.285714286266509634,
                       0.222222110318059915, 0.181828962039985641, 0.153314978805724397,
                       0.14619095556025326);
  }
  return {k, f - (half_square - s * (half_square + r))};
}

// The logarithm of x that is zero, negative, infinite or NaN; `y` elsewhere.
template <class T>
TD_FN Vec<T> fix_log(Vec<T> x, Vec<T> y) {
  const Mask<T> ordinary = (x > 0) & (x < kInfOf<T>);
  if (all(ordinary)) return y;
  const Vec<T> nan = std::numeric_limits<T>::quiet_NaN();
  const Vec<T> special = select(x == 0, Vec<T>(-kInfOf<T>), select(x == kInfOf<T>, x, nan));
  return select(ordinary, y, special);
}

template <class T>
TD_FN Vec<T> log_positive(Vec<T> x) {
  const auto [k, log_m] = split_log(x);
  const double hi = kIsFloat<T> ? 0x1.62e4p-1 : 0x1.62e42feep-1;
  const double lo = kIsFloat<T> ? 0x1.7f7d1cp-20 : 0x1.a39ef35793c76p-33;
  return fma(k, hi, fma(k, lo, log_m));
}
template <class T>
TD_FN Vec<T> log(Vec<T> x) {
  return fix_log(x, log_positive(x));
}

template <class T>
TD_FN Vec<T> log2(Vec<T> x) {
  const auto [k, log_m] = split_log(x);
  return fix_log(x, fma(log_m, 1.4426950408889634, k));
}

template <class T>
TD_FN Vec<T> log10(Vec<T> x) {
  const auto [k, log_m] = split_log(x);
  const double hi = 0x1.344p-2, lo = 0.30102999566398120 - hi;  // log10(2); k hi is exact
  return fix_log(x, fma(k, hi, fma(log_m, 0.43429448190325183, k * lo)));
}

// log(1 + x): u = 1 + x rounds, and x - (u - 1) is what got lost.
template <class T>
TD_FN Vec<T> log1p(Vec<T> x) {
  const Vec<T> u = x + 1;
  const Vec<T> lost = select(u < Vec<T>(kIsFloat<T> ? 0x1p40 : 0x1p80), (x - (u - 1)) / u, 0);
  return fix_log(u, select(x == 0, x, log_positive(u) + lost));
}

// --- hyperbolic functions
// -----------------------------------------------------------------------------------------

template <class T>
TD_FN Vec<T> tanh(Vec<T> x) {
  const Vec<T> e = expm1(raw_min(Vec<T>(kIsFloat<T> ? 10 : 20), abs(x)) * 2);
  return copysign(e / (e + 2), x);
}

// e^x / 2, finite as long as the result is.
template <class T>
TD_FN Vec<T> half_exp(Vec<T> x) {
  if (all(x < (kIsFloat<T> ? 88 : 709))) return exp(x) * 0.5;
  const Vec<T> root = exp(x * 0.5);
  return root * 0.5 * root;
}

template <class T>
TD_FN Vec<T> sinh(Vec<T> x) {
  const double far = kIsFloat<T> ? 10 : 20;  // from here on e^-x is below half an ulp of e^x
  const Vec<T> a = abs(x), e = expm1(raw_min(Vec<T>(far), a));
  return copysign(select(a < far, (e + e / (e + 1)) * 0.5, half_exp(a)), x);
}
template <class T>
TD_FN Vec<T> cosh(Vec<T> x) {
  const Vec<T> h = half_exp(abs(x));
  return h + Vec<T>(0.25) / h;
}

template <class T>
TD_FN Vec<T> asinh(Vec<T> x) {
  const Vec<T> a = abs(x);
  const Vec<T> near = log1p(a + a * a / (sqrt(fma(a, a, 1)) + 1));
  const Vec<T> far = log(a) + 0.69314718055994531;
  return copysign(select(a > Vec<T>(0x1p28), far, near), x);
}
template <class T>
TD_FN Vec<T> acosh(Vec<T> x) {
  const Vec<T> t = x - 1, near = log1p(t + sqrt(fma(t, t, t * 2)));
  const Vec<T> y = select(x > Vec<T>(0x1p28), log(x) + 0.69314718055994531, near);
  return select(x < 1, Vec<T>(std::numeric_limits<T>::quiet_NaN()), y);
}
template <class T>
TD_FN Vec<T> atanh(Vec<T> x) {
  const Vec<T> a = abs(x);
  return copysign(log1p(a * 2 / (Vec<T>(1) - a)) * 0.5, x);
}

// --- trigonometric functions
// --------------------------------------------------------------------------------------

// x = q pi/2 + r, |r| <= pi/4; q stands in the lowest bits of `bits`. Good to |x| < kMaxAngle.
template <class T>
struct ReducedAngle {
  Vec<T> bits, r;
};
template <class T>
inline constexpr T kMaxAngle = kIsFloat<T> ? T(48000) : T(1e7);
template <class T>
TD_FN ReducedAngle<T> reduce_angle(Vec<T> x) {
  const Vec<T> bits = fma(x, 0.63661977236758134, kRounder<T>);
  const Vec<T> q = kRounder<T> - bits;
  const double p1 = kIsFloat<T> ? 0x1.921fb6p0 : 0x1.921fb54442d18p0;
  const double p2 = kIsFloat<T> ? -0x1.777a5cp-25 : 0x1.1a62633145c07p-54;
  const double p3 = kIsFloat<T> ? -0x1.ee59dap-50 : -0x1.f1976b7ed8fbcp-110;
  return {bits, fma(q, p3, fma(q, p2, fma(q, p1, x)))};
}

// Error of sine 5e-12 (float), 4e-18 (double); of cosine 1e-13, 5e-20.
template <class T>
TD_FN Vec<T> sin_reduced(Vec<T> r) {
  const Vec<T> z = r * r;
  Vec<T> p;
  if constexpr (kIsFloat<T>) {
    p = polynomial(z, -0.166666666414268501, 0.0083333293623137844, -0.000198393271455321235,
                   2.71823734864618204e-6);
  } else {
    p = polynomial(z, -0.166666666666666317, 0.00833333333332231507, -0.000198412698297251706,
                   2.75573136620532105e-6, -2.50507532646565357e-8, 1.58965049857573966e-10);
  }
  return fma(r * z, p, r);
}
template <class T>
TD_FN Vec<T> cos_reduced(Vec<T> r) {
  const Vec<T> z = r * r;
  Vec<T> p;
  if constexpr (kIsFloat<T>) {
    p = polynomial(z, 0.0416666666224777697, -0.00138888837226668046, 2.47995117722186905e-5,
                   -2.72095482842762519e-7);
  } else {
    p = polynomial(z, 0.0416666666666665987, -0.00138888888888739909, 2.48015872893950409e-5,
                   -2.7557314326063965e-7, 2.08757195631802744e-9, -1.13594489071941014e-11);
  }
  return fma(z * z, p, fma(z, -0.5, 1));
}

// Whether q is odd: sine and cosine change places.
template <class T>
TD_FN Mask<T> odd_quadrant(Vec<T> bits) {
  return signbit(flip_sign<0>(Vec<T>(0), bits));
}

template <class T>
TD_FN Vec<T> sin(Vec<T> x) {
  if (!all(abs(x) < kMaxAngle<T>)) return map_lanes([](T v) { return std::sin(v); }, x);
  const auto [bits, r] = reduce_angle(x);
  const Vec<T> y = flip_sign<1>(select(odd_quadrant(bits), cos_reduced(r), sin_reduced(r)), bits);
  return select(x == 0, x, y);
}
template <class T>
TD_FN Vec<T> cos(Vec<T> x) {
  if (!all(abs(x) < kMaxAngle<T>)) return map_lanes([](T v) { return std::cos(v); }, x);
  const auto [bits, r] = reduce_angle(x);
  const Mask<T> odd = odd_quadrant(bits);
  const Vec<T> y = select(odd, -sin_reduced(r), cos_reduced(r));
  return flip_sign<1>(y, bits);
}
template <class T>
TD_FN Vec<T> tan(Vec<T> x) {
  if (!all(abs(x) < kMaxAngle<T>)) return map_lanes([](T v) { return std::tan(v); }, x);
  const auto [bits, r] = reduce_angle(x);
  const Mask<T> odd = odd_quadrant(bits);
  const Vec<T> s = sin_reduced(r), c = cos_reduced(r);
  return select(x == 0, x, select(odd, -c, s) / select(odd, s, c));
}

template <class T>
TD_FN Vec<T> asin(Vec<T> x) {
  return hn::Asin(typename Vec<T>::Tag(), x.raw);
}
template <class T>
TD_FN Vec<T> acos(Vec<T> x) {
  return hn::Acos(typename Vec<T>::Tag(), x.raw);
}
template <class T>
TD_FN Vec<T> atan(Vec<T> x) {
  return hn::Atan(typename Vec<T>::Tag(), x.raw);
}

// Float: t = |x| or 1 / |x|, t + t^3 P(t^2) with relative error 2e-9; pi/2 in two parts.
inline constexpr double kHalfPi = 1.5707963267948966;
inline constexpr double kHalfPiLow = kHalfPi - static_cast<double>(static_cast<float>(kHalfPi));
TD_FN Vec<float> atan(Vec<float> x) {
  const Vec<float> a = abs(x);
  const Mask<float> beyond = a > 1;
  const Vec<float> t = select(beyond, Vec<float>(1) / a, a), z = t * t;
  const Vec<float> p =
      paired_polynomial(z, z * z, -0.333333019, 0.199986385, -0.142652435, 0.10957566,
                        -0.0841942861, 0.0582340204, -0.0314551687, 0.011064153, -0.0018271483);
  const Vec<float> far = Vec<float>(kHalfPi) - (t + fma(t * z, p, -kHalfPiLow));
  return copysign(select(beyond, far, fma(t * z, p, t)), x);
}
// Float: s + s^3 P(s^2) for |x| <= 1/2, else pi/2 - 2 asin(s), s^2 = (1 - |x|) / 2.
TD_FN Vec<float> asin(Vec<float> x) {
  const Vec<float> a = abs(x);
  const Mask<float> beyond = a > 0.5;
  const Vec<float> z = select(beyond, (Vec<float>(1) - a) * 0.5, a * a);
  const Vec<float> s = select(beyond, sqrt(z), a), sz = s * z;
  const Vec<float> p = polynomial(z, 0.166666599, 0.0750050092, 0.044515721, 0.0318176038,
                                  0.0144026379, 0.0375651545);
  const Vec<float> far = (Vec<float>(kHalfPi) - (s + s)) - fma(sz + sz, p, -kHalfPiLow);
  return copysign(select(beyond, far, fma(sz, p, s)), x);
}

// --- error function and other special functions
// -------------------------------------------------------------------

// Applies a function of double vectors to float vectors, and rounds once.
template <class F, class... Vecs>
TD_FN Vec<float> through_double(const F& f, Vecs... x) {
#if HWY_TARGET == HWY_SCALAR
  return static_cast<float>(hn::GetLane(f(Vec<double>(hn::GetLane(x.raw))...).raw));
#else
  const hn::ScalableTag<double> wide;
  const hn::ScalableTag<float> narrow;
  const hn::Half<decltype(narrow)> half;
  const auto upper =
      hn::DemoteTo(half, f(Vec<double>(hn::PromoteTo(wide, hn::UpperHalf(half, x.raw)))...).raw);
  const auto lower =
      hn::DemoteTo(half, f(Vec<double>(hn::PromoteTo(wide, hn::LowerHalf(half, x.raw)))...).raw);
  return hn::Combine(narrow, upper, lower);
#endif
}

// e^(-x^2), with what squaring rounds away made up for.
template <class T>
TD_FN Vec<T> exp_minus_square(Vec<T> x) {
  const Vec<T> square = x * x, e = exp(-square);
  return fma(-e, fma(x, x, -square), e);
}

// (1 + 2x) e^(x^2) erfc(x) for 0 <= x <= 27.5 (double) or 10.2 (float), less its constant term: a
// polynomial in t = (x - 3) / (x + 3) [Shepherd and Laframboise 1981] that t remains to be
// multiplied by. Relative error 3e-17 (double), 3e-9 (float).
template <class T>
inline constexpr double kErfcConstant = kIsFloat<T> ? 1.25300805790013246 : 1.25300805826972964;
template <class T>
TD_FN Vec<T> erfc_polynomial(Vec<T> t) {
  if constexpr (kIsFloat<T>) {
    return polynomial(t, -0.135621144828063112, -0.0475622893693090307, 0.129646612429709083,
                      -0.119272474268208165, 0.0682933674332262089, -0.0237913480315026294,
                      0.00257884536053820012, 0.00199637573950349801, -0.000795749233396886246,
                      -0.000276390255573552025);
  } else {
    return long_polynomial(t, -0.135621106124580675, -0.0475622943534467093, 0.129645158702704428,
                           -0.119273663415511788, 0.0683080273458418527, -0.0237705149145542663,
                           0.00252939178766909222, 0.00188869031508911369, -0.000779832032546475077,
                           -0.000105159507120881833, 0.000125098122243763878,
                           4.94820186655647948e-6, -0.0000200965299535030067,
                           -7.27688696615789994e-7, 3.46377989167188057e-6, 3.49088667855040958e-7,
                           -6.04718003444415402e-7, -1.31133221697872456e-7, 9.16516352984537837e-8,
                           3.28706816336942874e-8, -8.4340016556519746e-9, -4.18258251449267221e-9);
  }
}

// t and 1 / (1 + 2x), by one division.
template <class T>
struct ErfcArguments {
  Vec<T> t, inverse;
};
template <class T>
TD_FN ErfcArguments<T> erfc_arguments(Vec<T> x) {
  const Vec<T> a = x + 3, d = fma(x, 2, 1), both = Vec<T>(1) / (a * d);
  return {(x - 3) * d * both, a * both};
}

// e^(x^2) erfc(x).
template <class T>
TD_FN Vec<T> erfc_scaled(Vec<T> x) {
  const auto [t, inverse] = erfc_arguments(x);
  return fma(t, erfc_polynomial(t), kErfcConstant<T>) * inverse;
}

// erfc(x) for x from 1/2 to where it is no more than half the least denormal. What is rounded away
// in x^2, in the exponential, in 1 + 2x, in the polynomial's last sum and in the quotient is
// carried along and added at the end.
template <class T>
TD_FN Vec<T> erfc_far(Vec<T> x) {
  const Vec<T> square = x * x, square_low = fma(x, x, -square);
  const auto [bits, n, r] = split_exponent(-square);
  const Vec<T> m = expm1_reduced(r - square_low), e = m + 1, e_low = m - (e - 1);

  const Vec<T> constant = kErfcConstant<T>;
  const double rest = kErfcConstant<T> - static_cast<double>(static_cast<T>(kErfcConstant<T>));
  const auto [t, inverse] = erfc_arguments(x);
  const Vec<T> u = t * erfc_polynomial(t), p = constant + u, p_low = u - (p - constant) + rest;
  const Vec<T> d = fma(x, 2, 1), d_low = fma(x, 2, -(d - 1)), q = p * inverse;
  const Vec<T> q_low = (fma(-q, d, p) - q * d_low + p_low) * inverse;

  const Vec<T> y = fma(e, q, fma(e, q_low, e_low * q));
  return all(square < (kIsFloat<T> ? 80 : 700)) ? add_exponent(y, bits) : scale(y, n);
}

// erf(x) for |x| <= 1; relative error 8e-18.
TD_FN Vec<double> erf_near(Vec<double> x) {
  const Vec<double> p =
      polynomial(x * x, 0.12837916709551257, -0.376126389031835404, 0.112837916709450063,
                 -0.0268661706432377704, 0.00522397760711642273, -0.000854832597538969208,
                 0.000120552949048397079, -0.0000149247369074196603, 1.64474247033173624e-6,
                 -1.62084838018717059e-7, 1.37200645467776856e-8, -7.79589882700214224e-10);
  return fma(x, p, x);
}
// The same for |x| <= 1/2; relative error 5e-9.
TD_FN Vec<float> erf_near(Vec<float> x) {
  const Vec<float> p =
      polynomial(x * x, 0.128379167095512574, -0.376126389031837525, 0.112837916709551257,
                 -0.0268661706451312518, 0.00522397762544218785, -0.000854832702345085283);
  return fma(x, p, x);
}

// Float: x P(x^2) / Q(x^2), relative error 2.5e-8 up to 4, from where erf rounds to 1.
TD_FN Vec<float> erf(Vec<float> x) {
  x = clamp_number(x, -4, 4);
  const Vec<float> z = x * x;
  const Vec<float> p = polynomial(z, 1.12837914013, 0.193495804296, 0.0530942966344,
                                  0.00388097248666, 0.00028447047438, 1.98661927203e-6);
  const Vec<float> q = polynomial(z, 1.0, 0.504813761781, 0.115328794016, 0.0152025378813,
                                  0.00118491708694, 3.74134630428e-5);
  return clamp_number(x * p / q, -1, 1);
}
TD_FN Vec<double> erf(Vec<double> x) {
  const Vec<double> a = clamp_number(abs(x), 0, 6);
  const Mask<double> near = a < 1;
  if (all(near)) return erf_near(x);
  const Vec<double> far = Vec<double>(1) - exp_minus_square(a) * erfc_scaled(a);
  return copysign(any(near) ? select(near, erf_near(a), far) : far, x);
}

template <class T>
TD_FN Vec<T> erfc(Vec<T> x) {
  const Mask<T> near = (x < 0.5) & (x > (kIsFloat<T> ? -0.5 : -1.0));
  if (all(near)) return Vec<T>(1) - erf_near(x);
  const Vec<T> a = abs(clamp_number(x, -6, kIsFloat<T> ? 10.2 : 27.5));  // 2 below -6
  const Vec<T> y = erfc_far(a);
  const Vec<T> outer = select(x < 0, Vec<T>(2) - y, y);
  return any(near) ? select(near, Vec<T>(1) - erf_near(x), outer) : outer;
}

// y / x with erf(y) = x as a function of w = -log(1 - x^2) [Giles 2010]: smooth in w near 0, in its
// root beyond. Relative error 7e-9 for floats, 8e-17 for doubles up to those next to 1.
TD_FN Vec<float> erfinv_ratio(Vec<float> w) {
  using V = Vec<float>;
  const V central =
      polynomial(w - 2.5, 1.50140936045032883, 0.246640279054636628, -0.00417739287520314867,
                 -0.00125272639177322908, 0.000218349386239766433, -4.9724196894547512e-6,
                 -3.46398526763337158e-6, 4.68131348055341217e-7, 2.33359671957081065e-8,
                 -8.93192597024422152e-9);
  if (all(w < 5)) return central;
  const V tail =
      polynomial(sqrt(w) - 3, 2.83297679447386325, 1.00167506584105178, 0.00944574382055980145,
                 -0.0076391390344015252, 0.00568267852207812238, -0.00358781577010215431,
                 0.00149722250882011085, -0.0000760479017080273459, -0.000319926672932599402,
                 0.000129241754692669321);
  return select(w < 5, central, tail);
}
TD_FN Vec<double> erfinv_ratio(Vec<double> w) {
  using V = Vec<double>;
  const V central =
      polynomial(w - 3, 1.62354200646482992, 0.241630404166158288, -0.00573813522100596771,
                 -0.000836181776909316619, 0.000195061324413727972, -0.0000127164226387205847,
                 -1.74800209670303417e-6, 4.49985425457183341e-7, -2.3688726264922951e-8,
                 -5.46717898421890051e-9, 1.11079742320373048e-9, -3.14255512799493812e-11,
                 -1.73285387319288365e-11, 2.69896523090908359e-12, 6.19078147940634838e-15,
                 -5.29297204472101504e-14, 6.33900239440659068e-15, 2.74059375764936667e-16,
                 -1.62547328079683997e-16, 1.28744044384650578e-17, 2.04112898747169221e-18,
                 -3.91614741835486403e-19, -1.02085791840696433e-20, 4.33651087280765805e-21);
  if (all(w < 6)) return central;
  const V root = sqrt(w);
  const V tail =
      polynomial(root - 3.2, 3.03363657440923218, 1.0046924418689637, 0.00597316951505321948,
                 -0.00429416503048799662, 0.00295082028626346129, -0.00199301245310832534,
                 0.00107845396439079484, -0.000357769897080048734, -0.0000122681893939345356,
                 0.0000935620304379092252, -0.0000535374669819602814, 9.86089176406441435e-6,
                 5.84701639857637023e-6, -5.01057634289439618e-6, 1.44304529003922646e-6,
                 2.1463903991191779e-7, -3.97428578351648178e-7, 1.43418892594085191e-7,
                 2.21632067976342976e-8, -2.32720922312157151e-8);
  const V far =
      polynomial(root - 5, 4.84990640140858434, 1.01030046486454719, -0.000138719318380043739,
                 -0.000215030119914496295, 0.0000759952780992312222, -0.0000196817695185703327,
                 4.52605245924514653e-6, -9.93036592603527026e-7, 2.29053330348354723e-7,
                 -6.75329402651751008e-8, 2.90167826823469157e-8, -1.52975532548252635e-8,
                 7.82511499644089115e-9, -3.42719311595944305e-9, 1.3119682858504086e-9,
                 -4.61861121323141734e-10, 7.18650171019905759e-11, 4.83720135609309431e-11,
                 -2.09247177867822842e-11);
  return select(w < 6, central, select(root < 4, tail, far));
}
template <class T>
TD_FN Vec<T> erfinv(Vec<T> x) {
  const Vec<T> y = x * erfinv_ratio(-log((Vec<T>(1) - x) * (x + 1)));
  return select(abs(x) == 1, copysign(Vec<T>(kInfOf<T>), x), y);
}

// log(pi / |sin(pi x)|): infinite at integers.
TD_FN Vec<double> log_reflection(Vec<double> x) {
  return Vec<double>(1.1447298858494002) - log(sin(abs(x - round(x)) * 3.14159265358979324));
}
// As special::digamma; the shift's sum of 1/x, 1/(x+1), ... is kept as one fraction.
TD_FN Vec<double> digamma(Vec<double> x) {
  using V = Vec<double>;
  constexpr double kPi = 3.14159265358979324;
  const Mask<double> negative = x < 0;
  V r = select(negative, V(1) - x, x), p = 0, q = 1;
  for (Mask<double> small = r < 10; any(small); small = r < 10) {
    p = select(small, fma(p, r, q), p);
    q = select(small, q * r, q);
    r = select(small, r + 1, r);
  }
  const V z = V(1) / (r * r);
  const V series =
      z * polynomial(z, 1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760, 1. / 12);
  V y = log(r) - V(0.5) / r - series - p / q;
  if (any(negative)) {
    const V fraction = x - round(x);  // exact, however near to an integer
    const V reflected = y - V(kPi) / tan(fraction * kPi);
    y = select(negative, select(fraction == 0, V(kNaN), reflected), y);
  }
  return select(x == 0, copysign(V(kInfOf<double>), -x), y);
}
TD_FN Vec<float> digamma(Vec<float> x) {
  return through_double([](Vec<double> v) HWY_ATTR { return digamma(v); }, x);
}
// As special::trigamma, with two terms more.
TD_FN Vec<double> trigamma(Vec<double> x) {
  using V = Vec<double>;
  const Mask<double> negative = x < 0;
  V r = select(negative, V(1) - x, x), sum = 0;
  for (Mask<double> small = r < 10; any(small); small = r < 10) {
    sum = select(small, sum + V(1) / (r * r), sum);
    r = select(small, r + 1, r);
  }
  const V i = V(1) / r, z = i * i;
  const V series = z * polynomial(z, 1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730,
                                  7. / 6, -3617. / 510);
  const V y = fma(V(1) + V(0.5) * i + series, i, sum);
  if (!any(negative)) return y;
  constexpr double kPi = 3.14159265358979324;
  const V fraction = x - round(x);
  const V s = V(kPi) / sin(fraction * kPi);
  return select(negative, select(x == floor(x), V(kInfOf<double>), s * s - y), y);
}
TD_FN Vec<float> trigamma(Vec<float> x) {
  return through_double([](Vec<double> v) HWY_ATTR { return trigamma(v); }, x);
}
template <class T>
TD_FN Vec<T> zeta(Vec<T> s, Vec<T> q) {
  return map_lanes([](T a, T b) { return special::zeta(a, b); }, s, q);
}
template <class T>
TD_FN Vec<T> sgn(Vec<T> x) {
  return select(x > 0, Vec<T>(1), select(x < 0, Vec<T>(-1), Vec<T>(0)));
}
// The angle of a real number and its derivative.
template <class T>
TD_FN Vec<T> angle(Vec<T> x) {
  return select(isnan(x), x, select(x < 0, Vec<T>(3.1415926535897932), Vec<T>(0)));
}
template <class T>
TD_FN Vec<T> angle_gradient(Vec<T>) {
  return Vec<T>(0);
}

// --- two arguments
// ------------------------------------------------------------------------------------------------

// r = x - trunc(x/y) y, exact in one step while the quotient is a small integer. The rounded
// quotient may be one too large: then r has the wrong sign.
template <class T>
TD_FN Vec<T> fmod(Vec<T> x, Vec<T> y) {
  const Vec<T> q = trunc(x / y);
  if (!all(abs(q) < (kIsFloat<T> ? 0x1p22 : 0x1p51))) {
    return map_lanes([](T a, T b) { return std::fmod(a, b); }, x, y);
  }
  Vec<T> r = fma(-q, y, x);
  r = select((r != 0) & (signbit(r) ^ signbit(x)), r + copysign(y, x), r);
  return select(abs(x) < abs(y), x, copysign(r, x));
}
template <class T>
TD_FN Vec<T> remainder(Vec<T> x, Vec<T> y) {
  const Vec<T> r = fmod(x, y);
  return select((r != 0) & ((y < 0) ^ (r < 0)), r + y, r);
}
template <class T>
TD_FN Vec<T> trunc_divide(Vec<T> x, Vec<T> y) {
  return trunc(x / y);
}
// Exact as Python's x // y: (x - x mod y) / y is an integer up to rounding.
template <class T>
TD_FN Vec<T> floor_divide(Vec<T> x, Vec<T> y) {
  const Vec<T> quotient = x / y, r = fmod(x, y);
  Vec<T> d = (x - r) / y;
  d = select((r != 0) & ((y < 0) ^ (r < 0)), d - 1, d);
  const Vec<T> f = floor(d);
  const Vec<T> nearest = select(d - f > 0.5, f + 1, f);
  return select(y == 0, quotient, select(d == 0, copysign(Vec<T>(0), quotient), nearest));
}
// atan of the smaller over the larger coordinate, moved to the right octant.
template <class T>
TD_FN Vec<T> atan2(Vec<T> y, Vec<T> x) {
  const Vec<T> ax = abs(x), ay = abs(y), larger = raw_max(ax, ay);
  if (!all((larger > 0) & isfinite(x + y))) {
    return map_lanes([](T a, T b) { return std::atan2(a, b); }, y, x);
  }
  Vec<T> a = atan(raw_min(ax, ay) / larger);
  a = select(ay > ax, 1.5707963267948966 - a, a);
  return copysign(select(x < 0, 3.1415926535897932 - a, a), y);
}
template <class T>
TD_FN Vec<T> hypot(Vec<T> x, Vec<T> y) {
  const Vec<T> ax = abs(x), ay = abs(y), larger = raw_max(ax, ay), ratio = raw_min(ax, ay) / larger;
  if (!all((larger > 0) & (ax < kInfOf<T>)&(ay < kInfOf<T>))) {
    return map_lanes([](T a, T b) { return std::hypot(a, b); }, x, y);
  }
  return larger * sqrt(fma(ratio, ratio, 1));
}
// The bits of finite numbers of one sign, as integers, follow each other as the numbers do.
template <class T>
TD_FN Vec<T> nextafter(Vec<T> x, Vec<T> y) {
  const typename Vec<T>::Tag d;
  const typename Vec<T>::Bits bits;
  const auto given = hn::BitCast(bits, x.raw), one = hn::Set(bits, 1);
  const Mask<T> outwards = (y > x) ^ (x < 0);
  const Vec<T> above = hn::BitCast(d, hn::Add(given, one));
  const Vec<T> below = hn::BitCast(d, hn::Sub(given, one));
  const Vec<T> least = copysign(Vec<T>(std::numeric_limits<T>::denorm_min()), y);
  const Vec<T> moved = select(x == 0, least, select(outwards, above, below));
  return select(x == y, y, select(isnan(x) | isnan(y), x + y, moved));
}
// --- powers
// -----------------------------------------------------------------------------------------------------------

// table[i] for the i in the lowest bits of `index`: of 32 floats or 16 doubles, or of integers as
// large.
template <class T, class E>
TD_FN auto look_up(const E* table, hn::Vec<typename Vec<T>::Bits> index) {
  const hn::ScalableTag<E> d;
  const typename Vec<T>::Bits bits;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  using Found = hn::Vec<decltype(bits)>;
  const auto part = [&](int64_t i)
                        HWY_ATTR { return hn::BitCast(bits, hn::Load(d, table + i)).raw; };
#endif
#if HWY_TARGET == HWY_AVX3
  if constexpr (kIsFloat<T>)
    return hn::BitCast(d, Found{_mm512_permutex2var_epi32(part(0), index.raw, part(16))});
  else
    return hn::BitCast(d, Found{_mm512_permutex2var_epi64(part(0), index.raw, part(8))});
#else
#if HWY_TARGET == HWY_AVX2
  // Faster than gathering: of four parts, two bits of the index choose.
  if constexpr (kIsFloat<T>) {
    const auto choose = [&](__m256i low, __m256i high, __m256i bit) HWY_ATTR {
      return _mm256_castps_si256(_mm256_blendv_ps(
          _mm256_castsi256_ps(low), _mm256_castsi256_ps(high), _mm256_castsi256_ps(bit)));
    };
    const auto of = [&](int64_t i)
                        HWY_ATTR { return _mm256_permutevar8x32_epi32(part(i), index.raw); };
    const __m256i bit3 = _mm256_slli_epi32(index.raw, 28), bit4 = _mm256_slli_epi32(index.raw, 27);
    return hn::BitCast(
        d, Found{choose(choose(of(0), of(8), bit3), choose(of(16), of(24), bit3), bit4)});
  } else
#endif
    return hn::GatherIndex(d, table, hn::And(index, hn::Set(bits, kIsFloat<T> ? 31 : 15)));
#endif
}

// x = 2^k m for normal positive x, as power_tables.h says; `index` is that of m.
template <class T>
struct TableParts {
  hn::Vec<typename Vec<T>::Bits> index;
  Vec<T> k, m;
};
template <class T>
TD_FN TableParts<T> split_table(Vec<T> x) {
  using I = std::conditional_t<kIsFloat<T>, int32_t, int64_t>;
  const I first = kIsFloat<T> ? I(power_tables::kFirstFloat) : I(power_tables::kFirstDouble);
  const typename Vec<T>::Tag d;
  const typename Vec<T>::Bits bits;
  const auto given = hn::BitCast(bits, x.raw), shifted = hn::Sub(given, hn::Set(bits, first));
  const auto exponent = hn::ShiftRight<kMantissaBits<T>>(shifted);
  const auto m = hn::Sub(given, hn::ShiftLeft<kMantissaBits<T>>(exponent));
  const auto rounder = hn::BitCast(bits, Vec<T>(kRounder<T>).raw);
  const Vec<T> k = Vec<T>(hn::BitCast(d, hn::Add(exponent, rounder))) - kRounder<T>;
  return {hn::ShiftRight<kMantissaBits<T> - (kIsFloat<T> ? 5 : 4)>(shifted), k, hn::BitCast(d, m)};
}

// Adding this rounds to a multiple of 1/32 (float) or 1/16, whose count then stands in the lowest
// bits; 2^(count/32) or 2^(count/16) of such bits, and what it was rounded by.
template <class T>
inline constexpr T kFineRounder = kIsFloat<T> ? T(0x1.8p18) : T(0x1.8p48);
template <class T>
struct Root {
  Vec<T> high, low;
};
template <class T>
TD_FN Root<T> root_of_two(Vec<T> rounded) {
  const auto n = hn::BitCast(typename Vec<T>::Bits(), rounded.raw);
  const auto exponent = hn::ShiftLeft<kMantissaBits<T> - (kIsFloat<T> ? 5 : 4)>(n);
  const typename Vec<T>::Tag d;
  if constexpr (kIsFloat<T>)
    return {hn::BitCast(d, hn::Add(look_up<T>(power_tables::kShortRootBits, n), exponent)),
            look_up<T>(power_tables::kShortRootLow, n)};
  else
    return {hn::BitCast(d, hn::Add(look_up<T>(power_tables::kRootBits, n), exponent)),
            look_up<T>(power_tables::kRootLow, n)};
}

template <class T>
struct TwoParts {
  Vec<T> high, low;
};

// log2(x) of normal positive x: with r = m reciprocal - 1, log2(1 + r) = r (c1 + r (c2 + ...)); all
// but the third term and those after it in two parts. Error 1e-10 relative to r.
TD_FN TwoParts<float> log2_two_parts(Vec<float> x) {
  using V = Vec<float>;
  const auto [i, k, m] = split_table(x);
  const V r = fma(m, look_up<float>(power_tables::kShortReciprocal, i), -1);  // exact
  const V c1 = 1.44269502f, c1_low = 1.92617682e-08f, c2 = -0.721347511f, c2_low = 1.30655964e-08f;
  const V t = fma(r, polynomial(r, 0.480898296291, -0.36083896811, 0.288737436109), c2_low);
  const V u = c2 + t, u_low = t - (u - c2);
  const V v = r * u, v_low = fma(r, u, -v) + fma(r, u_low, c1_low);
  const V w = c1 + v, w_low = v - (w - c1) + v_low;
  const V q = r * w, q_low = fma(r, w_low, fma(r, w, -q));
  const V base = k + look_up<float>(power_tables::kLog2High, i), high = base + q;
  return {high, q - (high - base) + (q_low + look_up<float>(power_tables::kLog2Low, i))};
}

// For doubles, log(x) of normal positive x in two parts, so that the rounding of y log(x) does not
// show in the result. log(1 + r) = r - r^2/2 + r^3 P(r); error of P 2.5e-21 relative to r.
TD_FN TwoParts<double> log_two_parts(Vec<double> x) {
  using V = Vec<double>;
  const auto [i, k, m] = split_table(x);
  const V reciprocal = look_up<double>(power_tables::kReciprocal, i);
  const V one = m * reciprocal, r = one - 1, rounding = fma(m, reciprocal, -one);
  const V half = r * 0.5, square = r * half, square_low = fma(r, half, -square), z = r * r;
  const V r_low = fma(rounding, z - r, rounding);  // rounding / (1 + r)
  const V rest =
      z * r *
      paired_polynomial(r, z, 0.333333333333333315, -0.2499999999999932, 0.199999999999975225,
                        -0.166666666725920815, 0.142857142975262252, -0.124999828961647963,
                        0.111110869422511832, -0.100201332989595354, 0.0911326871464595289);
  const V base = fma(k, 0x1.62e42feep-1, look_up<double>(power_tables::kLogHigh, i));  // exact
  const V sum = base + r, less = sum - square;
  const V sum_low = base - sum + r, less_low = sum - less - square;
  const V small = fma(k, 0x1.a39ef35793c76p-33, look_up<double>(power_tables::kLogLow, i));
  const V low = sum_low + less_low + (small + r_low - square_low + rest), high = less + low;
  return {high, less - high + low};
}
// log(gamma(x)) for positive x. From 8 on Stirling's series [A&S 6.1.41]. Below, x is moved to a t
// in [0.75, 2.25] by x (x-1) (x-2) ..., and log(gamma(t)) = (t-1) (t-2) R(u), where u = (t - 1.3) /
// (t + 1.3) puts R's singularities far from the interval; error of R 4e-10, 3e-17 if `exact`.
template <bool exact>
TD_FN Vec<double> lgamma_series(Vec<double> x, [[maybe_unused]] Vec<double> log_x) {
  using V = Vec<double>;
  const V i = V(1) / x, z = i * i;
  if constexpr (!exact) {
    const V series = i * polynomial(z, 1. / 12, -1. / 360, 1. / 1260);
    return fma(x - 0.5, log_x - 1, series + 0.418938533204672742);
  } else {
    const V series = i * polynomial(z, 1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188,
                                    -691. / 360360, 1. / 156, -3617. / 122400);
    const TwoParts<double> l = log_two_parts(x);
    const V h = l.high - 1, h_low = (l.high - (h + 1)) + l.low;
    const V p = (x - 0.5) * h, p_low = fma(x - 0.5, h, -p) + (x - 0.5) * h_low;
    return select(p == kInfOf<double>, p, p + (series + 0.418938533204672742 + p_low));
  }
}
template <bool exact>
TD_FN Vec<double> lgamma_positive(Vec<double> x) {
  using V = Vec<double>;
  const Mask<double> large = x >= 8;
  if (all(large)) return lgamma_series<exact>(x, exact ? x : log(x));
  const Mask<double> below = x < 0.75;
  V t = select(below, x + 1, x), product = select(below, x, V(1));
  for (Mask<double> far = (t > 2.25) & !large; any(far); far = (t > 2.25) & !large) {
    t = select(far, t - 1, t);
    product = select(far, product * t, product);
  }
  const V u = (t - 1.3) / (t + 1.3);
  V r;
  if constexpr (exact)
    r = polynomial(u, 0.515118140513621304, -0.456316928954700191, 0.129357479123339278,
                   -0.156909213819962738, 0.0861598615831170839, -0.0961751705836422967,
                   0.0642885756453304788, -0.0694187118736294364, 0.0511966975583544833,
                   -0.0543220885102771149, 0.042511201642389217, -0.0446172439082889836,
                   0.0364505822037001651, -0.0379700086132061354, 0.030335602856920242,
                   -0.0314412097149386704, 0.0379810371561302665, -0.0391493223126929725);
  else
    r = polynomial(u, 0.515118140701522929, -0.456316929151679088, 0.129357348762789299,
                   -0.156909077160663409, 0.0861742560072315513, -0.0961902612205303713,
                   0.0637366412426520689, -0.0688400222187265475, 0.0596825769393126566,
                   -0.0632214007187729522);
  const V moved = log(exact ? product : select(large, x, product));
  const V y = fma((t - 1) * (t - 2), r, select(below, -moved, moved));
  return any(large) ? select(large, lgamma_series<exact>(x, moved), y) : y;
}
TD_FN Vec<float> lgamma(Vec<float> x) {
  const auto positive_or_not = [](Vec<double> v) HWY_ATTR {
    const Mask<double> negative = v < 0;
    Vec<double> y = lgamma_positive<false>(select(negative, Vec<double>(1) - v, v));
    if (any(negative)) y = select(negative, log_reflection(v) - y, y);
    return select(isinf(v), abs(v), y);
  };
  return through_double(positive_or_not, x);
}
// For negative x by reflection, a difference of logarithms; where that cancels too much, near the
// zeros between negative integers, by the C library's function, lane by lane.
TD_FN Vec<double> lgamma(Vec<double> x) {
  using V = Vec<double>;
  const Mask<double> negative = x < 0;
  V y = lgamma_positive<true>(select(negative, V(1) - x, x));
  if (any(negative)) {
    const V reflection = log_reflection(x), difference = reflection - y;
    const Mask<double> far = (abs(reflection) + abs(y) <= raw_max(abs(difference), V(1)) * 4) &
                             (x < -1e-290);  // pi x is no denormal
    y = select(negative, difference, y);
    const auto one = [](double v, double known) {
      return std::isnan(known) ? special::lgamma(v) : known;
    };
    if (any(negative & !far)) y = map_lanes(one, x, select(negative & !far, V(kNaN), y));
  }
  return select(isinf(x), abs(x), y);
}

// 2^(p + p_low) and e^(p + p_low) where the result is normal. Less the multiple of 1/32, or of
// log(2) / 16, what is left is within 0.0157 or 0.0217; error of the polynomials 1e-10 and 1e-17.
TD_FN Vec<float> power_of_parts(Vec<float> p, Vec<float> p_low) {
  using V = Vec<float>;
  const V rounded = p + kFineRounder<float>, r = p - (rounded - kFineRounder<float>)+p_low;
  const auto [root, root_low] = root_of_two(rounded);
  const V q = fma(r, polynomial(r, 0.693147180527, 0.240228456147, 0.055504570542), root_low);
  return fma(root, q, root);
}
TD_FN Vec<double> power_of_parts(Vec<double> p, Vec<double> p_low) {
  using V = Vec<double>;
  const V rounded = fma(p, 1.4426950408889634, kFineRounder<double>);
  const V n = rounded - kFineRounder<double>;
  const auto [root, root_low] = root_of_two(rounded);
  const V r = fma(n, -0x1.a39ef35793c76p-33, fma(n, -0x1.62e42feep-1, p)) + (p_low + root_low);
  const V square = r * r;
  const V q =
      fma(square,
          paired_polynomial(r, square, 0.500000000000000555, 0.166666666644133959,
                            0.0416666666596413812, 0.00833347206153685176, 0.00138891293273224752),
          r);
  return fma(root, q, root);
}

// The same where it may be 0, denormal or infinite.
template <class T>
HWY_NOINLINE Vec<T> power_extreme(Vec<T> p, Vec<T> p_low) {
  const double most = kIsFloat<T> ? 160 : 760;  // beyond, the result is 0 or infinite
  p_low = select(abs(p) < most, p_low, Vec<T>(0));
  p = clamp_number(p, -most, most);
  const double log_2 = kIsFloat<T> ? 1 : 0x1.62e42feep-1;
  const Vec<T> n = round(p * (1 / log_2));
  const Vec<T> rest = kIsFloat<T> ? p_low : fma(n, -0x1.a39ef35793c76p-33, p_low);
  return scale(power_of_parts(fma(n, -log_2, p), rest), n);
}
// x^y for normal positive x and finite y.
TD_FN Vec<float> pow_normal(Vec<float> x, Vec<float> y) {
#if HWY_TARGET == HWY_SCALAR
  return map_lanes([](float a, float b) { return std::pow(a, b); }, x, y);
#else
  const TwoParts<float> l = log2_two_parts(x);
  const Vec<float> p = y * l.high, p_low = fma(y, l.low, fma(y, l.high, -p));
  return all(abs(p) < 126) ? power_of_parts(p, p_low) : power_extreme(p, p_low);
#endif
}
TD_FN Vec<double> pow_normal(Vec<double> x, Vec<double> y) {
  const TwoParts<double> l = log_two_parts(x);
  const Vec<double> p = y * l.high, p_low = fma(y, l.low, fma(y, l.high, -p));
  return all(abs(p) < 708) ? power_of_parts(p, p_low) : power_extreme(p, p_low);
}

// Whether all x are normal and positive and all y finite.
template <class T>
TD_FN bool all_ordinary(Vec<T> x, Vec<T> y) {
  const hn::RebindToUnsigned<hn::ScalableTag<T>> d;
  const auto least = hn::BitCast(d, Vec<T>(std::numeric_limits<T>::min()).raw);
  const auto infinite = hn::BitCast(d, Vec<T>(kInfOf<T>).raw);
  const auto normal = hn::Lt(hn::Sub(hn::BitCast(d, x.raw), least), hn::Sub(infinite, least));
  return all(Mask<T>{hn::RebindMask(hn::ScalableTag<T>(), normal)} & isfinite(y));
}
// Square roots and reciprocals are what most fractional and negative exponents ask for: signed
// powers of two, which are looked for here.
template <class T>
HWY_NOINLINE Vec<T> pow_rare(Vec<T> x, Vec<T> y) {
  if (all((y == 0.5) & (x >= 0))) return sqrt(x);
  if (all((y == -0.5) & (x >= 0))) return rsqrt(x);
  if (all(y == -1)) return Vec<T>(1) / x;
  if (all(y == -2)) return Vec<T>(1) / (x * x);
  if (all_ordinary(x, y)) return pow_normal(x, y);
  return map_lanes([](T a, T b) { return std::pow(a, b); }, x, y);
}
template <class T>
TD_FN bool is_power_of_two(T y) {
  std::conditional_t<kIsFloat<T>, uint32_t, uint64_t> bits;
  std::memcpy(&bits, &y, sizeof bits);
  return bits << (sizeof(T) * 8 - kMantissaBits<T>) == 0;
}
template <class T>
TD_FN Vec<T> pow(Vec<T> x, Vec<T> y) {
  if (is_power_of_two(hn::GetLane(y.raw)) || !all_ordinary(x, y)) return pow_rare(x, y);
  return pow_normal(x, y);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#include "kernels/cpu/simd/simd_special-inl.h"

#endif  // TAEDA_KERNELS_CPU_SIMD_MATH_INL_H_
