// LogAddExp<T>: the running log(e^x_0 + e^x_1 + ...), for logcumsumexp on every device (NVRTC
// compiles it, too). It does not overflow, and a NaN stays.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

namespace taeda {

template <class T>
struct LogAddExp {
  T total = -std::numeric_limits<T>::infinity();
  T operator()(T x) {
    if (std::isnan(x) || std::isnan(total)) return total = std::numeric_limits<T>::quiet_NaN();
    const T high = std::max(x, total), low = std::min(x, total);
    total = std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
    return total;
  }
};

// Complex numbers are compared by their real parts, the logarithms of their exponentials' sizes.
template <class T>
struct LogAddExp<std::complex<T>> {
  using C = std::complex<T>;
  C total{-std::numeric_limits<T>::infinity()};
  C operator()(const C& x) {
    constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
    if (is_nan(x) || is_nan(total)) return total = C(kNaN, kNaN);
    const bool above = x.real() >= total.real();  // of equal ones the last, as in PyTorch
    const C high = above ? x : total, low = above ? total : x;
    if (std::isinf(high.real())) {
      // Two infinite ones add up in the directions of both; what is zero changes nothing.
      if (high.real() < 0) return total;
      return total = high.real() > low.real() ? high : std::log(std::exp(low) + std::exp(high));
    }
    return total = high + log_1p(std::exp(low - high));
  }

 private:
  static bool is_nan(const C& z) { return std::isnan(z.real()) || std::isnan(z.imag()); }
  // log(1 + z) for |z| <= 1, also where z is small; near -1, 1 + z is exact and its logarithm
  // better.
  static C log_1p(const C& z) {
    const T a = z.real(), b = z.imag(), above_one = a * (2 + a) + b * b;  // |1 + z|^2 - 1
    const T size = above_one < T(-0.5) ? std::log(std::hypot(1 + a, b)) : std::log1p(above_one) / 2;
    return C(size, std::atan2(b, 1 + a));
  }
};

}  // namespace taeda
