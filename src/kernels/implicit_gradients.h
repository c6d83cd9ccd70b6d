// How draws of gamma and beta numbers move with their parameters: dx/da = -(dF/da) / (dF/dx), F the
// distribution function (Figurnov, Mohamed & Mnih, "Implicit reparameterization gradients", 2018).
//
// F has no derivative in closed form. As in PyTorch, whose numbers these are to within rounding:
// power series near the ends of the range, the saddle point expansion of Rice where the parameters
// are large, and between them rational functions of logarithms with PyTorch's fitted coefficients,
// right to about 1e-3. For every device (NVRTC compiles them, too).
#pragma once

#include <cmath>

#include "kernels/cpu/simd/special.h"

namespace taeda::implicit_gradients {

template <class T>
T zero_if_nan(T x) {
  return std::isnan(x) ? T(0) : x;
}

// c[0] + c[1] x + ... + c[N - 1] x^(N - 1)
template <int N>
double polynomial(const double (&c)[N], double x) {
  double sum = c[N - 1];
  for (int i = N - 2; i >= 0; i--) sum = c[i] + x * sum;
  return sum;
}

// Sum of (-x)^i / i! / (a + i) and of its derivative: F = x^a times the first.
inline double gamma_near_zero(double a, double x) {
  double factor = 1, sum = 1 / a, squares = 1 / (a * a);
  for (int i = 1; i <= 5; i++) {
    factor *= -x / i;
    const double denominator = a + i;
    sum += factor / denominator;
    squares += factor / (denominator * denominator);
  }
  const double power = std::pow(x, a), density = std::pow(x, a - 1) * std::exp(-x);
  const double by_shape =
      (std::log(x) - cpu::special::digamma(a)) * (power * sum) - power * squares;
  return zero_if_nan(-by_shape / density);
}

inline double gamma_saddle_point(double a, double x) {
  if (x >= double{0.9f} * a && x <= double{1.1f} * a) {  // near the singularity at x = a
    const double first = 1 + 24 * a * (1 + 12 * a);
    const double second =
        1440 * (a * a) + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x);
    return first * second / (1244160 * (a * a) * (a * a));
  }
  const double log_ratio = std::log(x / a), scale = std::sqrt(8 * a), below = a - x;
  const double tail = std::pow(x - a - a * log_ratio, -1.5);
  const double bracket = scale / below + (x < a ? -tail : tail);
  const double term = log_ratio * bracket - std::sqrt(2 / a) * (a + x) / (below * below);
  const double stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a));
  return -stirling * (x * term) / scale;
}

// exp of a rational function of log(a), whose coefficients are parabolas in log(x / a).
inline double gamma_fit(double a, double x) {
  static constexpr double kNumerator[4][3] = {{0.16009398, 0.53487893, 0.040121004},
                                              {-0.094634809, 0.1298071, -0.0065914022},
                                              {0.025146376, 0.065735949, -0.0026286047},
                                              {-0.0030648343, -0.0015649758, -0.0013441777}};
  static constexpr double kDenominator[4][3] = {{1, 0.16639465, 0.017050642},
                                                {0.32668115, 0.020070113, -0.0021309326},
                                                {0.10406089, -0.0035938915, 0.00085092367},
                                                {0.0014179084, -0.00058392623, -1.5247877e-07}};
  const double u = std::log(x / a), v = std::log(a);
  double p[4], q[4];
  for (int i = 0; i < 4; i++) {
    p[i] = polynomial(kNumerator[i], u);
    q[i] = polynomial(kDenominator[i], u);
  }
  return std::exp(polynomial(p, v) / polynomial(q, v));
}

inline double gamma_gradient(double a, double x) {
  if (x < double{0.8f}) return gamma_near_zero(a, x);
  return a > 8 ? gamma_saddle_point(a, x) : gamma_fit(a, x);
}

// Beta numbers near 0: the derivative by the first shape ...
template <class T>
T beta_by_alpha(T x, T a, T b) {
  const T log_factor = cpu::special::digamma(a) - cpu::special::digamma(a + b) - std::log(x);
  T factor = 1, sum = 1 / a * (log_factor + 1 / a);
  for (int i = 1; i <= 10; i++) {
    factor *= (T(i) - b) * x / T(i);
    const T denominator = a + T(i);
    sum += factor / denominator * (log_factor + 1 / denominator);
  }
  return zero_if_nan(x * std::pow(1 - x, -b) * sum);
}

// ... and by the second.
template <class T>
T beta_by_beta(T x, T a, T b) {
  const T log_factor = cpu::special::digamma(a + b) - cpu::special::digamma(b);
  T factor = 1, product = 1, derivative = 0, sum = log_factor / a;
  for (int i = 1; i <= 8; i++) {
    factor *= -x / T(i);
    derivative = derivative * (b - T(i)) + product;
    product *= b - T(i);
    sum += factor / (a + T(i)) * (derivative + log_factor * product);
  }
  return zero_if_nan(-std::pow(1 - x, 1 - b) * sum);
}

inline double stirling(double x) { return 1 + 1 / (12 * x) + 1 / (288 * x * x); }

inline double beta_saddle_point(double x, double a, double b) {
  const double total = a + b, mean = a / total;
  const double deviation = std::sqrt(a * b / (total + 1)) / total;
  if (std::abs(x - mean) <= 0.1 * deviation) {  // near the singularity at the mean
    const double bb = b * b;
    const double terms[] = {47 * x * bb * bb, (43 + 20 * (16 + 27 * b) * x) * bb * b,
                            3 * (59 + 180 * b - 90 * x) * bb,
                            (453 + 1620 * b * (1 - x) - 455 * x) * b, 8 * (1 - x) * (135 * b - 11)};
    const double scale = (1 + 12 * a) * (1 + 12 * b) / (total * total);
    return scale / (1 - x) * polynomial(terms, a) / (12960 * a * a * a * bb * (1 + 12 * total));
  }
  const double from_mean = a * (x - 1) + b * x;
  const double first = (2 * (a * a) * (x - 1) + a * b * (x - 1) - x * (b * b)) /
                       (std::sqrt(2 * a / b) * std::pow(total, 1.5) * from_mean * from_mean);
  const double log_ratio = std::log(a / (total * x));
  const double tail = std::pow(b * std::log(b / (total * (1 - x))) + a * log_ratio, -1.5);
  const double bracket = std::sqrt(8 * a * b / total) / from_mean + (x < mean ? tail : -tail);
  return stirling(a) * stirling(b) / stirling(total) * (-x / std::sqrt(2 * a * b / total)) *
         (first + 0.5 * log_ratio * bracket);
}

// A rational correction to x (digamma(total) - digamma(a)) / b: polynomials in u = log(x),
// v = log(a / x) and w = log(total) - v, indexed by the powers of each.
inline double beta_fit(double x, double a, double total) {
  static constexpr double kNumerator[3][3][4] = {
      {{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
       {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
       {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
      {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
       {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
       {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
      {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
       {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
       {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}};
  static constexpr double kDenominator[3][3][4] = {
      {{1, -0.02924021934, -0.04438342661, 0.007285809825},
       {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
       {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
      {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
       {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
       {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
      {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
       {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
       {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}};
  const double u = std::log(x), v = std::log(a) - u, w = std::log(total) - v;
  double p[3], q[3];
  for (int i = 0; i < 3; i++) {
    const auto row = [&](const double(&c)[3][4]) {
      const double sums[] = {polynomial(c[0], w), polynomial(c[1], w), polynomial(c[2], w)};
      return polynomial(sums, v);
    };
    p[i] = row(kNumerator[i]);
    q[i] = row(kDenominator[i]);
  }
  const double analytic =
      x * (cpu::special::digamma(total) - cpu::special::digamma(a)) / (total - a);
  return polynomial(p, u) / polynomial(q, u) * analytic;
}

// -(dF/da) / (dF/dx) / (1 - x) for a beta number x of shapes a and total - a.
template <class T>
T dirichlet_gradient(T x, T a, T total) {
  const T b = total - a, from_ends = total * x * (1 - x);
  if (x <= T(0.5) && from_ends < T(2.5)) return beta_by_alpha(x, a, b);
  if (x >= T(0.5) && from_ends < T(0.75)) return -beta_by_beta(1 - x, b, a);
  if (a > 6 && b > 6) return static_cast<T>(beta_saddle_point(x, a, double{total} - double{a}));
  return static_cast<T>(beta_fit(x, a, total));
}

}  // namespace taeda::implicit_gradients
