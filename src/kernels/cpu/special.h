// Scalar special functions that the C library lacks: digamma, inverse erf, and friends, for one number at a time.
#pragma once

namespace taeda::cpu::special {

// d/dx log|gamma(x)|. Poles: NaN at negative integers, -copysign(inf, x) at zero, as torch.digamma.
double digamma(double x);
float digamma(float x);
// d/dx digamma(x).
double trigamma(double x);
float trigamma(float x);
// The y with erf(y) = x; +-inf at +-1, NaN outside.
double erfinv(double x);
float erfinv(float x);
// log|gamma(x)| without the C library's write to a global sign, so safe with threads.
double lgamma(double x);
float lgamma(float x);

}  // namespace taeda::cpu::special
