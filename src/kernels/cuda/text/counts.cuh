// Poisson, binomial and gamma numbers. An element's words come from a subsequence of its own, or
// that of a thread that has four elements; read once, written once.
//
// Few events are counted one by one (Knuth; Devroye, Non-uniform random variate generation, 1986).
// For more, the transformed rejection of Hormann (1993): a number k from a distribution close above
// the wanted one is accepted with the ratio of the two. Poisson numbers of rates below 64 and above
// 4000 are curand's, those between only of the same distribution. Gamma numbers are those of
// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), as in PyTorch: from
// float's uniform and normal numbers, for double, too.
#pragma once
#include "kernels/cuda/text/philox.cuh"

namespace taeda::device {

// A proposal of the transformed rejection method, and the level at which it must be accepted.
template <class T>
struct Proposal {
  T k, from_edge, level;
};
template <class T>
struct Hat {
  T a, b, center;

  TD_FN Proposal<T> draw(T u, T level) const {
    u -= T(0.5);
    const T from_edge = T(0.5) - std::abs(u);
    return {std::floor((2 * a / from_edge + b) * u + center), from_edge, level};
  }
  // Density of the proposals, up to a factor.
  TD_FN T density(const Proposal<T>& p) const { return a / (p.from_edge * p.from_edge) + b; }
};

// Arrivals before the product of uniform numbers falls below exp(-rate).
TD_FN double poisson_by_counting(float rate, WordStream& words) {
  float product = std::exp(rate);
  uint32_t k = 0;
  do {
    k++;
    product *= words.uniform();
  } while (product > 1);
  return k - 1;
}
TD_FN double poisson_by_rejection(double rate, WordStream& words) {
  const double b = 0.931 + 2.53 * std::sqrt(rate), log_rate = std::log(rate);
  const Hat<double> hat{-0.059 + 0.02483 * b, b, rate + 0.43};
  const double scale = 1.1239 + 1.1328 / (b - 3.4), inside = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = words.uniform();
    const Proposal<double> p = hat.draw(u, words.uniform());
    if (p.from_edge >= 0.07 && p.level <= inside) return p.k;
    if (p.k < 0 || (p.from_edge < 0.013 && p.level > p.from_edge)) continue;
    const double ratio = p.k * log_rate - rate - std::lgamma(p.k + 1);
    if (std::log(p.level * scale / hat.density(p)) <= ratio) return p.k;
  }
}
TD_FN double poisson(double rate, WordStream& words) {
  if (rate < 64) return poisson_by_counting(static_cast<float>(rate), words);
  if (rate <= 4000) return poisson_by_rejection(rate, words);
  const uint32_t w[] = {words.next(), words.next(), words.next(), words.next()};
  const Normals<double> normal(Words4{{w[0], w[1], w[2], w[3]}});
  return std::floor(std::sqrt(rate) * normal.at[0] + rate + 0.5);
}

// log(k!) less Stirling's formula for it.
template <class T>
TD_FN T stirling_tail(T k) {
  const T x = k + 1;
  if (k <= 9) return std::lgamma(x) - (k + T(0.5)) * std::log(x) + x - T(0.91893853320467274178);
  return (T(1) / 12 - (T(1) / 360 - T(1) / 1260 / (x * x)) / (x * x)) / x;
}
template <class T>
TD_FN T trial(WordStream& words) {
  return static_cast<T>(words.next() & 0xffffffu) * T(0x1p-24);
}
// Adds up the waiting times between successes until the trials are over.
template <class T>
TD_FN T binomial_by_counting(T n, T p, WordStream& words) {
  const T log_fail = std::log1p(-p);
  T trials = 0, k = 0;
  while (true) {
    trials += std::ceil(std::log(trial<T>(words)) / log_fail);
    if (trials > n) return k;
    k += 1;
  }
}
template <class T>
TD_FN T binomial_by_rejection(T n, T p, WordStream& words) {
  const T deviation = std::sqrt(n * p * (1 - p)), b = T(1.15) + T(2.53) * deviation;
  const Hat<T> hat{T(-0.0873) + T(0.0248) * b + T(0.01) * p, b, n * p + T(0.5)};
  const T inside = T(0.92) - T(4.2) / b, scale = (T(2.83) + T(5.1) / b) * deviation;
  const T odds = p / (1 - p), mode = std::floor((n + 1) * p);
  while (true) {
    const T u = trial<T>(words);
    const Proposal<T> x = hat.draw(u, trial<T>(words));
    if (x.from_edge >= T(0.07) && x.level <= inside) return x.k;
    if (!(x.k >= 0 && x.k <= n)) continue;
    const T rest = n - x.k + 1, at_mode = n - mode + 1;
    const T ratio = (mode + T(0.5)) * std::log((mode + 1) / (odds * at_mode)) +
                    (n + 1) * std::log(at_mode / rest) +
                    (x.k + T(0.5)) * std::log(odds * rest / (x.k + 1)) + stirling_tail(mode) +
                    stirling_tail(n - mode) - stirling_tail(x.k) - stirling_tail(n - x.k);
    if (std::log(x.level * scale / hat.density(x)) <= ratio) return x.k;
  }
}
template <class T>
TD_FN T binomial(T n, T p, WordStream& words) {
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (std::isnan(n) || std::isnan(p)) return std::numeric_limits<T>::quiet_NaN();
  const T rarer = p <= T(0.5) ? p : 1 - p;
  const T k = n * rarer >= 10 ? binomial_by_rejection(n, rarer, words)
                              : binomial_by_counting(n, rarer, words);
  return p <= T(0.5) ? k : n - k;
}

// Normal numbers come in pairs: the second is kept for the next call.
class NormalStream {
 public:
  TD_FN explicit NormalStream(WordStream& words) : words_(words) {}
  TD_FN float next() {
    has_second_ = !has_second_;
    if (!has_second_) return second_;
    const uint32_t first = words_.next(), second = words_.next();
    const Normals<float> pair(Words4{{first, second, first, second}});
    second_ = pair.at[1];
    return pair.at[0];
  }

 private:
  WordStream& words_;
  float second_ = 0;
  bool has_second_ = false;
};
// A cube of a shifted normal number, d (1 + c x)^3, is accepted with the ratio of the densities;
// shapes below 1 take a draw of shape + 1 times u^(1 / shape). Constants have float's precision.
template <class T>
TD_FN T gamma_number(T shape, WordStream& words) {
  if (!(shape >= 0)) return std::numeric_limits<T>::quiet_NaN();
  T scale = 1;
  if (shape < 1) {
    if (shape == 0) return 0;
    scale = std::pow(static_cast<T>(1) - static_cast<T>(words.uniform()), 1 / shape);
    shape += 1;
  }
  NormalStream normals(words);
  const T d = shape - static_cast<T>(1.0f / 3.0f), c = 1 / std::sqrt(9 * d);
  while (true) {
    const T x = normals.next(), root = 1 + c * x;
    if (root <= 0) continue;
    const T v = root * root * root, u = 1 - static_cast<T>(words.uniform()), xx = x * x;
    if (u < 1 - static_cast<T>(0.0331f) * xx * xx ||
        std::log(u) < T(0.5) * xx + d * (1 - v + std::log(v)))
      return scale * d * v;
  }
}

TD_FN void poisson_kernel(const CountArgs& args) {
  const uint64_t size = args.itemsize;
  const Start from = start(args.philox);
  for (uint64_t i = first_index(); i < args.n; i += index_step()) {
    WordStream words(from, i);
    double rate = load<double>(args.in[0] + i * size, args.type);
    if (!(rate >= 0)) report(args.message, 0, 0), rate = 0;
    store(args.out + i * size, args.type, poisson(rate, words));
  }
}

template <class T>
TD_FN void gamma_kernel(const CountArgs& args) {
  constexpr T kLeast = std::numeric_limits<T>::min();
  const Start from = start(args.philox);
  for (uint64_t i = first_index(); i < args.n; i += index_step()) {
    WordStream words(from, i);
    const T x = gamma_number(reinterpret_cast<const T*>(args.in[0])[i], words);
    reinterpret_cast<T*>(args.out)[i] = x < kLeast ? kLeast : x;
  }
}

// Blocks of 128 threads have 512 elements, each thread four that are 128 apart.
template <class T>
TD_FN void binomial_kernel(const CountArgs& args) {
  constexpr uint64_t kThreads = 128;
  const uint64_t size = args.itemsize;
  const Start from = start(args.philox);
  for (uint64_t t = first_index(); t < (args.n + 511) / 512 * kThreads; t += index_step()) {
    WordStream words(from, t);
    for (uint64_t k = 0; k < 4; k++) {
      const uint64_t i = t / kThreads * 512 + t % kThreads + k * kThreads;
      if (i >= args.n) break;
      const T n = load<T>(args.in[0] + i * size, args.type),
              p = load<T>(args.in[1] + i * size, args.type);
      store(args.out + i * size, args.type, binomial(n, p, words));
    }
  }
}

}  // namespace taeda::device
