// Drawing categories by weight.
//
// With replacement: the cumulative distribution is searched for a uniform number. Without, or for
// one sample: the categories with the largest weight / Exp(1) (Efraimidis and Spirakis, Weighted
// random sampling, 2006).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/with_dtype.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/random_draws.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kBetweenLooks = 1 << 20;  // numbers, for an interrupt

// Weights are summed and divided in their own precision (float for the 16-bit types).
template <class Compute>
void draw_with_replacement(const std::vector<Compute>& weights, int64_t* out, int64_t samples,
                           GeneratorLock& generator) {
  std::vector<Compute> cumulative(weights.size());
  std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
  const Compute sum = cumulative.back();
  for (Compute& value : cumulative) value /= sum;
  cumulative.back() = 1;
  for (int64_t j = 0; j < samples; j++) {
    if (j > 0 && j % kBetweenLooks == 0) generator.look();
    const double u = generator->uniform();
    out[j] = std::lower_bound(cumulative.begin(), cumulative.end(), u,
                              [](Compute c, double v) { return c < v; }) -
             cumulative.begin();
  }
}

template <class Compute>
void draw_without_replacement(const std::vector<Compute>& keys, int64_t* out, int64_t samples) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + samples, order.end(), [&](int64_t a, int64_t b) {
    return keys[a] != keys[b] ? keys[a] > keys[b] : a < b;
  });
  std::copy_n(order.begin(), samples, out);
}

template <class T, class Compute>
void run(const View& out, const View& p, bool replacement, Generator& generator) {
  const int64_t rows = p.sizes[0], categories = p.sizes[1], samples = out.sizes[1];
  const T* weights = p.as<T>();
  for (int64_t r = 0; r < rows; r++) {  // all rows are checked before the first draw
    double sum = 0;
    for (int64_t c = 0; c < categories; c++) {
      const auto weight = static_cast<double>(weights[r * categories + c]);
      TD_CHECK(weight >= 0 && std::isfinite(weight),
               "probability tensor contains either `inf`, `nan` or element < 0");
      sum += weight;
    }
    TD_CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
  }
  GeneratorLock lock(generator);
  std::vector<Compute> row(static_cast<size_t>(categories));
  for (int64_t r = 0, since_look = 0; r < rows; r++) {
    since_look += categories + samples;
    if (since_look > kBetweenLooks) lock.look(), since_look = 0;
    for (int64_t c = 0; c < categories; c++)
      row[c] = static_cast<Compute>(weights[r * categories + c]);
    int64_t* drawn = out.as<int64_t>() + r * samples;
    if (replacement && samples > 1) {
      draw_with_replacement(row, drawn, samples, lock);
      continue;
    }
    for (Compute& key : row) {
      const Compute e =
          static_cast<Compute>(T(static_cast<Compute>(-std::log1p(-lock->uniform()))));
      key = static_cast<Compute>(T(key / e));
    }
    draw_without_replacement(row, drawn, samples);
  }
}

}  // namespace

void multinomial(const View& out, const View& p, bool replacement, Generator& generator) {
  TD_CHECK(is_floating(p.dtype),
           "multinomial only supports floating-point dtypes for input, got: {}",
           scalar_type_name(p.dtype));
  with_dtype<Floating>(p.dtype,
                       [&]<class T>(T) { run<T, Wide<T>>(out, p, replacement, generator); });
}

}  // namespace taeda::cpu
