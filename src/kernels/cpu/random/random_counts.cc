// Poisson and binomial numbers, with PyTorch's draws.
//
// Where few events are expected they are counted one by one (Knuth; Devroye, Non-uniform random
// variate generation, 1986). Else a number from a distribution that lies close above the wanted one
// is accepted with the ratio of the two: the transformed rejection of Hormann, "The transformed
// rejection method for generating Poisson random variables" and "The generation of binomial random
// variates" (both 1993), whose constants these are.
#include <cmath>

#include "core/with_dtype.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/random/random_draws.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

// A draw of the transformed rejection method: k, how far it is from the edge of the square (u), and
// the level v at which it must be accepted.
struct Proposal {
  double k, u, v;
  bool inside;  // of the part of the square where no comparison is needed
};

struct Hat {
  double a, b, centre, v_inside;

  Proposal draw(Draws& draws) const {
    const double u = draws.uniform() - 0.5, v = draws.uniform();
    const double from_edge = 0.5 - std::abs(u);
    return {std::floor((2 * a / from_edge + b) * u + centre), from_edge, v,
            from_edge >= 0.07 && v <= v_inside};
  }
  // Density of the proposals, up to a factor.
  double density(const Proposal& p) const { return a / (p.u * p.u) + b; }
};

double poisson_by_rejection(double rate, Draws& draws) {
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const Hat hat{-0.059 + 0.02483 * b, b, rate + 0.43, 0.9277 - 3.6224 / (b - 2)};
  const double scale = 1.1239 + 1.1328 / (b - 3.4), log_rate = std::log(rate);
  while (true) {
    const Proposal p = hat.draw(draws);
    if (p.inside) return p.k;
    if (p.k < 0 || (p.u < 0.013 && p.v > p.u)) continue;
    if (std::log(p.v * scale / hat.density(p)) <= p.k * log_rate - rate - std::lgamma(p.k + 1))
      return p.k;
  }
}

// The number of arrivals before the product of uniform numbers falls below exp(-rate).
double poisson_by_counting(double rate, Draws& draws) {
  const double limit = std::exp(-rate);
  double product = draws.uniform();
  double k = 0;
  for (; product > limit; k++) product *= draws.uniform();
  return k;
}

double poisson(double rate, Draws& draws) {
  TD_CHECK(rate >= 0, "invalid Poisson rate, expected rate to be non-negative");
  if (rate == 0) return 0;
  return rate >= 10 ? poisson_by_rejection(rate, draws) : poisson_by_counting(rate, draws);
}

// The constants are rounded to F, as PyTorch's are: the numbers drawn follow from each bit of them.
template <class F>
double binomial_by_rejection(F n, F p, Draws& draws) {
  const F mean = n * p, deviation = std::sqrt(mean * (1 - p)), odds = p / (1 - p);
  const F b = static_cast<F>(1.15 + 2.53 * static_cast<double>(deviation));
  const double wide_b = b, wide_p = p;
  const F a = static_cast<F>(-0.0873 + 0.0248 * wide_b + 0.01 * wide_p);
  const F centre = static_cast<F>(static_cast<double>(mean) + 0.5);
  const F v_inside = static_cast<F>(0.92 - 4.2 / wide_b);
  const F scale = static_cast<F>((2.83 + 5.1 / wide_b) * static_cast<double>(deviation));
  const Hat hat{a, b, centre, v_inside};
  const double mode = std::floor((n + 1) * p), log_odds = std::log(static_cast<double>(odds));
  const double at_mode = std::lgamma(mode + 1) + std::lgamma(n - mode + 1);
  while (true) {
    const Proposal x = hat.draw(draws);
    if (x.inside) return x.k;
    if (x.k < 0 || x.k > n) continue;
    const double ratio =
        at_mode - std::lgamma(x.k + 1) - std::lgamma(n - x.k + 1) + (x.k - mode) * log_odds;
    if (std::log(x.v * scale / hat.density(x)) <= ratio) return x.k;
  }
}

// Adds up the waiting times between successes until the trials are over.
double binomial_by_counting(double n, double p, Draws& draws) {
  double trials = 0, k = 0;
  const double failing = std::log1p(-p);
  while (true) {
    trials += std::ceil(std::log(draws.uniform()) / failing);
    if (trials > n) return k;
    k++;
  }
}

template <class F>
double binomial(F n, F p, Draws& draws) {
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (std::isnan(n) || std::isnan(p)) return std::nan("");
  const F rarer = p <= F(0.5) ? p : 1 - p;
  const double k = n * rarer >= 10 ? binomial_by_rejection(n, rarer, draws)
                                   : binomial_by_counting(n, rarer, draws);
  return p <= F(0.5) ? k : n - k;
}

template <class T>
double real(T x) {
  return static_cast<double>(static_cast<Wide<T>>(x));
}
template <class T>
T from_real(double x) {
  return static_cast<T>(static_cast<Wide<T>>(x));
}

void look_at_times(int64_t i, GeneratorLock& lock, Draws& draws) {
  if (i == 0 || i % (1 << 16) != 0) return;
  draws.flush();
  lock.look();
}

}  // namespace

void random_poisson(const View& out, const View& rate, Generator& generator) {
  GeneratorLock lock(generator);
  Draws draws(*lock);
  with_dtype<Floating>(out.dtype, [&]<class T>(T) {
    for (int64_t i = 0; i < out.numel; i++) {
      look_at_times(i, lock, draws);
      out.as<T>()[i] = from_real<T>(poisson(real(rate.as<T>()[i]), draws));
    }
  });
}

void random_binomial(const View& out, const View& count, const View& prob, Generator& generator) {
  GeneratorLock lock(generator);
  Draws draws(*lock);
  with_dtype<Floating>(out.dtype, [&]<class T>(T) {
    for (int64_t i = 0; i < out.numel; i++) {
      look_at_times(i, lock, draws);
      out.as<T>()[i] = from_real<T>(binomial(static_cast<Wide<T>>(count.as<T>()[i]),
                                             static_cast<Wide<T>>(prob.as<T>()[i]), draws));
    }
  });
}

}  // namespace taeda::cpu
