// Complex numbers for NVRTC: what the functors use of <complex>, in namespace TD_STD.
//
// Elementary functions go through those of the parts, as in [Kahan 1987, Branch cuts for complex
// elementary functions]; infinities and NaN are treated as far as that does.
#pragma once

namespace TD_STD {

template <class T>
struct alignas(2 * sizeof(T)) complex {
  using value_type = T;

  constexpr complex(T real = 0, T imag = 0) : real_(real), imag_(imag) {}
  template <class U>
  constexpr explicit(sizeof(U) > sizeof(T)) complex(const complex<U>& z)
      : real_(static_cast<T>(z.real())), imag_(static_cast<T>(z.imag())) {}
  constexpr T real() const { return real_; }
  constexpr T imag() const { return imag_; }

  friend constexpr complex operator+(complex a, complex b) {
    return {a.real_ + b.real_, a.imag_ + b.imag_};
  }
  friend constexpr complex operator-(complex a, complex b) {
    return {a.real_ - b.real_, a.imag_ - b.imag_};
  }
  friend constexpr complex operator-(complex a) { return {-a.real_, -a.imag_}; }
  friend constexpr complex operator*(complex a, complex b) {
    return {a.real_ * b.real_ - a.imag_ * b.imag_, a.real_ * b.imag_ + a.imag_ * b.real_};
  }
  friend constexpr complex operator*(complex a, T b) { return {a.real_ * b, a.imag_ * b}; }
  friend constexpr complex operator*(T a, complex b) { return b * a; }
  friend constexpr complex operator/(complex a, T b) { return {a.real_ / b, a.imag_ / b}; }
  friend constexpr bool operator==(complex a, complex b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }

 private:
  T real_, imag_;
};

template <class T>
complex<T> conj(complex<T> z) {
  return {z.real(), -z.imag()};
}
template <class T>
T abs(complex<T> z) {
  return hypot(z.real(), z.imag());
}
template <class T>
complex<T> times_i(complex<T> z) {
  return {-z.imag(), z.real()};
}
template <class T>
complex<T> over_i(complex<T> z) {
  return {z.imag(), -z.real()};
}

template <class T>
complex<T> exp(complex<T> z) {
  const T e = exp(z.real());
  if (z.imag() == 0) return {e, z.imag()};
  return {e * cos(z.imag()), e * sin(z.imag())};
}
// log|z| = log1p(|z|^2 - 1) / 2 where |z| is near 1.
template <class T>
complex<T> log(complex<T> z) {
  const T x = fabs(z.real()), y = fabs(z.imag()), a = x < y ? y : x, b = x < y ? x : y;
  const T modulus = a > T(0.5) && a < 2 ? log1p((a - 1) * (a + 1) + b * b) / 2 : log(abs(z));
  return {modulus, atan2(z.imag(), z.real())};
}
template <class T>
complex<T> log10(complex<T> z) {
  return log(z) * T(0.43429448190325182765);
}
template <class T>
complex<T> pow(complex<T> x, complex<T> y) {
  if (x == complex<T>()) return {};
  return exp(y * log(x));
}
// The root with a real part that is not negative; the larger part first, the other by division.
template <class T>
complex<T> sqrt(complex<T> z) {
  const T a = fabs(z.real()), larger = sqrt((abs(z) + a) / 2);
  if (larger == 0) return {0, z.imag()};
  const T other = fabs(z.imag()) / (2 * larger);
  if (z.real() >= 0) return {larger, copysign(other, z.imag())};
  return {other, copysign(larger, z.imag())};
}

template <class T>
complex<T> sinh(complex<T> z) {
  return {sinh(z.real()) * cos(z.imag()), cosh(z.real()) * sin(z.imag())};
}
template <class T>
complex<T> cosh(complex<T> z) {
  return {cosh(z.real()) * cos(z.imag()), sinh(z.real()) * sin(z.imag())};
}
// (t (1 + s^2), s) over cos^2 + sinh^2 sin^2, of t = tanh and s = tan: no overflow for large z.
template <class T>
complex<T> tanh(complex<T> z) {
  const T a = z.real(), s = tan(z.imag()), t = tanh(a);
  if (fabs(a) > 20) {  // e^-2|a| is lost beside 1
    const T decay = exp(-2 * fabs(a));
    return {copysign(T(1), a), 4 * decay * s / (1 + s * s)};
  }
  const T n = 1 + t * t * s * s, c = cosh(a);
  return {t * (1 + s * s) / n, s / (c * c) / n};
}
template <class T>
complex<T> sin(complex<T> z) {
  return over_i(sinh(times_i(z)));
}
template <class T>
complex<T> cos(complex<T> z) {
  return cosh(times_i(z));
}
template <class T>
complex<T> tan(complex<T> z) {
  return over_i(tanh(times_i(z)));
}

// The inverses go by the roots of 1 + w and 1 - w, whose parts keep the sign of a zero: it says on
// which side of the branch cut the argument lies [Kahan, CASINH and CACOS].
template <class T>
complex<T> asinh(complex<T> z) {
  const complex<T> p = sqrt(complex<T>(1 - z.imag(), z.real()));
  const complex<T> q = sqrt(complex<T>(1 + z.imag(), -z.real()));
  return {asinh(p.imag() * q.real() - p.real() * q.imag()),
          atan2(z.imag(), p.real() * q.real() - p.imag() * q.imag())};
}
template <class T>
complex<T> asin(complex<T> z) {
  return over_i(asinh(times_i(z)));
}
template <class T>
complex<T> acos(complex<T> z) {
  const complex<T> p = sqrt(complex<T>(1 + z.real(), z.imag()));
  const complex<T> q = sqrt(complex<T>(1 - z.real(), -z.imag()));
  return {2 * atan2(q.real(), p.real()), asinh(p.real() * q.imag() - p.imag() * q.real())};
}
template <class T>
complex<T> acosh(complex<T> z) {
  const complex<T> p = sqrt(complex<T>(z.real() + 1, z.imag()));
  const complex<T> q = sqrt(complex<T>(z.real() - 1, z.imag()));
  return {asinh(q.real() * p.real() + q.imag() * p.imag()), 2 * atan2(q.imag(), p.real())};
}
// Quarter of log(((1 + a)^2 + b^2) / ((1 - a)^2 + b^2)), without cancellation near 0.
template <class T>
complex<T> atanh(complex<T> z) {
  const T a = z.real(), b = z.imag(), c = 1 - fabs(a);
  const T real = log1p(4 * fabs(a) / (c * c + b * b)) / 4;
  return {copysign(real, a), atan2(2 * b, c * (1 + fabs(a)) - b * b) / 2};
}
template <class T>
complex<T> atan(complex<T> z) {
  return over_i(atanh(times_i(z)));
}

}  // namespace TD_STD
