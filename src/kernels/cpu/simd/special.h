// Scalar special functions that the C library lacks: digamma, inverse erf, and friends, for one
// number at a time. All are pure, so that a result nobody reads costs nothing.
#pragma once
#include <limits>

namespace taeda::cpu {

// For functors and kernels: V(kInf), select(outside, V(kNaN), y).
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace taeda::cpu

namespace taeda::cpu::special {

// d/dx log|gamma(x)|. Poles: NaN at negative integers, -copysign(inf, x) at zero, as torch.digamma.
[[gnu::const]] double digamma(double x);
[[gnu::const]] float digamma(float x);
// d/dx digamma(x).
[[gnu::const]] double trigamma(double x);
[[gnu::const]] float trigamma(float x);
// Hurwitz' zeta function, the sum of (q + k)^-s over k >= 0; inf at s = 1 and at the poles
// q = 0, -1, ..., NaN for s < 1 and for q < 0 with a broken s, as torch.special.zeta.
[[gnu::const]] double zeta(double s, double q);
[[gnu::const]] float zeta(float s, float q);
// The regularized incomplete gamma functions of shape a: P(a, x) = int_0^x t^(a-1) e^-t dt /
// Gamma(a) and Q = 1 - P. NaN for negative arguments; as torch.igamma and torch.igammac at 0 and
// infinity.
[[gnu::const]] double igamma(double a, double x);
[[gnu::const]] float igamma(float a, float x);
[[gnu::const]] double igammac(double a, double x);
[[gnu::const]] float igammac(float a, float x);
// e^(x^2) erfc(x), which does not underflow.
[[gnu::const]] double erfcx(double x);
[[gnu::const]] float erfcx(float x);
// The inverse of the normal distribution function; NaN outside [0, 1].
[[gnu::const]] double ndtri(double p);
[[gnu::const]] float ndtri(float p);
// Modified Bessel functions of the first kind of orders 0 and 1, times e^-|x|.
[[gnu::const]] double i0e(double x);
[[gnu::const]] float i0e(float x);
[[gnu::const]] double i1e(double x);
[[gnu::const]] float i1e(float x);
// The y with erf(y) = x; +-inf at +-1, NaN outside.
[[gnu::const]] double erfinv(double x);
[[gnu::const]] float erfinv(float x);
// log|gamma(x)| without the C library's write to a global sign, so safe with threads.
[[gnu::const]] double lgamma(double x);
[[gnu::const]] float lgamma(float x);

}  // namespace taeda::cpu::special
