// Scalar special functions that the C library lacks: digamma, inverse erf, and friends, for one
// number at a time. All are pure, so that a result nobody reads costs nothing.
#pragma once

namespace taeda::cpu::special {

// d/dx log|gamma(x)|. Poles: NaN at negative integers, -copysign(inf, x) at zero, as torch.digamma.
[[gnu::const]] double digamma(double x);
[[gnu::const]] float digamma(float x);
// d/dx digamma(x).
[[gnu::const]] double trigamma(double x);
[[gnu::const]] float trigamma(float x);
// d/dx trigamma(x).
[[gnu::const]] double tetragamma(double x);
[[gnu::const]] float tetragamma(float x);
// The y with erf(y) = x; +-inf at +-1, NaN outside.
[[gnu::const]] double erfinv(double x);
[[gnu::const]] float erfinv(float x);
// log|gamma(x)| without the C library's write to a global sign, so safe with threads.
[[gnu::const]] double lgamma(double x);
[[gnu::const]] float lgamma(float x);

}  // namespace taeda::cpu::special
