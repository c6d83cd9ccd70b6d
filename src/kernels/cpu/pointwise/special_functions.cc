// Bessel and Airy functions by their names in torch.special, for contiguous float and double
// tensors, computed in double.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pointwise/bessel.h"
#include "kernels/cpu/simd/special.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr double kPi = std::numbers::pi;

double j0(double x, double /*precision*/) { return std::isinf(x) ? kNaN : ::j0(x); }
double j1(double x, double /*precision*/) { return std::isinf(x) ? kNaN : ::j1(x); }
double y0(double x, double /*precision*/) {
  return x == 0 ? -kInf : x < 0 || std::isinf(x) ? kNaN : ::y0(x);
}
double y1(double x, double /*precision*/) {
  return x == 0 ? -kInf : x < 0 || std::isinf(x) ? kNaN : ::y1(x);
}

// Modified Bessel functions of the second kind, of one order and the next, times e^x.
struct ScaledK {
  double lower, upper;
};

// Orders 0 and 1 for x <= 2: Temme's series (J. Comput. Phys. 19, 1975), up to terms of relative
// size `precision`.
ScaledK temme_series(double x, double precision) {
  double f = -std::log(x / 2) - std::numbers::egamma, p = 0.5, c = 1, sum0 = f, sum1 = p;
  for (int k = 1; k < 40; k++) {
    f = (f * k + 2 * p) / (k * k);
    p /= k;
    c *= x * x / 4 / k;
    const double term0 = c * f, term1 = c * (p - k * f);
    sum0 += term0;
    sum1 += term1;
    if (std::abs(term0) <= sum0 * precision && std::abs(term1) <= sum1 * precision) break;
  }
  const double scale = std::exp(x);
  return {sum0 * scale, sum1 * 2 / x * scale};
}

// Orders nu and nu + 1 for x > 2: the continued fraction z_1 / z_0 of Temme and its sum, by
// Steed's algorithm.
ScaledK steed_fraction(double nu, double x, double precision) {
  const double first = 0.25 - nu * nu;
  double a = -first, b = 2 * (1 + x), d = 1 / b, step = d, fraction = d;
  double q_before = 0, q = 1, c = first, weight = first, sum = 1 + weight * step;
  for (int i = 2; i < 500; i++) {
    a -= 2 * (i - 1);
    c *= -a / i;
    const double q_next = (q_before - b * q) / a;
    q_before = q;
    q = q_next;
    weight += c * q;
    b += 2;
    d = 1 / (b + a * d);
    step *= b * d - 1;
    fraction += step;
    sum += weight * step;
    if (std::abs(weight * step) < std::abs(sum) * precision) break;
  }
  const double lower = std::sqrt(kPi / (2 * x)) / sum;
  return {lower, lower * (nu + x + 0.5 - first * fraction) / x};
}

ScaledK scaled_k(double x, double precision) {
  if (std::isnan(x) || x < 0) return {kNaN, kNaN};
  if (x == 0) return {kInf, kInf};
  if (std::isinf(x)) return {0, 0};
  return x <= 2 ? temme_series(x, precision) : steed_fraction(0, x, precision);
}
double scaled_k0(double x, double precision) { return scaled_k(x, precision).lower; }
double scaled_k1(double x, double precision) { return scaled_k(x, precision).upper; }
double k0(double x, double precision) {
  return std::isinf(x) && x > 0 ? 0 : scaled_k0(x, precision) * std::exp(-x);
}
double k1(double x, double precision) {
  return std::isinf(x) && x > 0 ? 0 : scaled_k1(x, precision) * std::exp(-x);
}

double spherical_j0(double x, double /*precision*/) {
  return x == 0 ? 1 : std::isinf(x) ? 0 : std::sin(x) / x;
}

// Ai by its power series near 0, else by Bessel functions of order 1/3 at 2/3 |x|^(3/2) [Abramowitz
// & Stegun 10.4.2, 10.4.14, 10.4.15].
double airy_ai(double x, double precision) {
  if (!std::isfinite(x)) return kNaN;
  if (x > -3 && x < 2.2) {
    double even = 1, odd = x, f = even, g = odd;
    for (int k = 3; k < 90; k += 3) {
      even *= x * x * x / ((k - 1) * k);
      odd *= x * x * x / (k * (k + 1));
      f += even;
      g += odd;
    }
    return 0.35502805388781724 * f - 0.25881940379280680 * g;
  }
  const double size = std::abs(x), argument = 2. / 3 * size * std::sqrt(size);
  if (x > 0) {
    return steed_fraction(1. / 3, argument, precision).lower * std::exp(-argument) *
           std::sqrt(size / 3) / kPi;
  }
  return std::sqrt(size) / 2 *
         (std::cyl_bessel_j(1. / 3, argument) -
          std::cyl_neumann(1. / 3, argument) / std::numbers::sqrt3);
}

struct Named {
  std::string_view name;
  double (*function)(double x, double precision);
  std::optional<BesselFunction> single = {};  // what computes floats, if not the function
};
constexpr std::array kFunctions = {
    Named{"bessel_j0", j0, BesselFunction::kJ0},
    Named{"bessel_j1", j1, BesselFunction::kJ1},
    Named{"bessel_y0", y0, BesselFunction::kY0},
    Named{"bessel_y1", y1, BesselFunction::kY1},
    Named{"modified_bessel_k0", k0, BesselFunction::kK0},
    Named{"modified_bessel_k1", k1, BesselFunction::kK1},
    Named{"scaled_modified_bessel_k0", scaled_k0, BesselFunction::kScaledK0},
    Named{"scaled_modified_bessel_k1", scaled_k1, BesselFunction::kScaledK1},
    Named{"spherical_bessel_j0", spherical_j0},
    Named{"airy_ai", airy_ai},
};

}  // namespace

void special_function(const View& result, const View& self, std::string_view name) {
  const auto named = std::find_if(kFunctions.begin(), kFunctions.end(),
                                  [&](const Named& each) { return each.name == name; });
  TD_CHECK(named != kFunctions.end(), "there is no special function {}", name);
  with_dtype<WideFloating>(self.dtype, [&]<class T>(T) {
    const T* const x = self.as<T>();
    T* const out = result.as<T>();
    const double precision = std::is_same_v<T, float> ? 1e-9 : 1e-17;  // of terms left out
    if constexpr (std::is_same_v<T, float>) {
      if (named->single) {
        parallel_for(0, self.numel, 2048, [&](int64_t begin, int64_t end) {
          bessel(*named->single, x + begin, out + begin, end - begin);
        });
        return;
      }
    }
    parallel_for(0, self.numel, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        out[i] = static_cast<T>(named->function(static_cast<double>(x[i]), precision));
    });
  });
}

}  // namespace taeda::cpu
