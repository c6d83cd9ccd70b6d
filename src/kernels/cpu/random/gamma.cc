// Gamma numbers with PyTorch's draws: Marsaglia and Tsang, "A simple method for generating gamma
// variables" (2000). A cube of a shifted normal number, d (1 + c x)^3, is accepted with the ratio
// of the densities; shapes a below 1 take a draw of shape a + 1 times u^(1/a).
#include <cmath>
#include <limits>

#include "core/with_dtype.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/random/random_draws.h"

namespace taeda::cpu {
namespace {

// PyTorch writes these in single precision, also for doubles.
constexpr float kThird = 1.0f / 3.0f, kSqueeze = 0.0331f;

// T is the precision in which PyTorch works out d.
template <class T>
double standard_gamma(T shape, Mt19937& generator) {
  if (!(shape >= 0)) return std::numeric_limits<double>::quiet_NaN();  // never accepts
  double scale = 1;
  if (shape < 1) {
    if (shape == 0) return 0;
    scale = std::pow(1 - generator.uniform(), static_cast<double>(1 / shape));
    shape += 1;
  }
  const double d = shape - kThird, c = 1 / std::sqrt(9 * d);
  while (true) {
    double x, root;
    do {
      x = generator.normal();
      root = 1 + c * x;
    } while (root <= 0);
    const double v = root * root * root, u = 1 - generator.uniform(), xx = x * x;
    const bool below_squeeze = u < 1 - kSqueeze * xx * xx;
    if (below_squeeze || std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

}  // namespace

void random_gamma(const View& out, const View& shape, Generator& generator) {
  GeneratorLock lock(generator);
  with_dtype<WideFloating>(out.dtype, [&]<class T>(T) {
    for (int64_t i = 0; i < out.numel; i++) {
      if (i > 0 && i % (1 << 16) == 0) lock.look();
      const T draw = static_cast<T>(standard_gamma(shape.as<T>()[i], *lock));
      constexpr T kLeast = std::numeric_limits<T>::min();
      out.as<T>()[i] = draw < kLeast ? kLeast : draw;
    }
  });
}

}  // namespace taeda::cpu
