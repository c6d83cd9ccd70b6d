// Drawing categories by weight, which may lie column by column (`p.strides`).
//
// With replacement: the cumulative distribution is searched for a uniform number. Without, or for
// one sample: the categories with the largest weight / Exp(1) (Efraimidis and Spirakis, Weighted
// random sampling, 2006).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/random/random_draws.h"
#include "kernels/cpu/simd/scratch.h"
#include "taeda/error.h"

namespace taeda::cpu {

// sort/topk.cc
void topk(const View& values, const View& indices, const View& self, int64_t k, int64_t dim,
          bool largest, bool sorted);

namespace {

constexpr int64_t kBetweenLooks = 1 << 17;  // numbers, for an interrupt
constexpr int64_t kKeysAtOnce = 1 << 20;

// Weights are summed and divided in their own precision (float for the 16-bit types).
template <class Compute>
void draw_row(const std::vector<Compute>& weights, int64_t* out, int64_t samples,
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

template <class T, class Compute>
void draw_with_replacement(const View& out, const View& p, Generator& generator) {
  const int64_t rows = p.sizes[0], categories = p.sizes[1], samples = out.sizes[1];
  GeneratorLock lock(generator);
  std::vector<Compute> row(static_cast<size_t>(categories));
  for (int64_t r = 0, since_look = 0; r < rows; r++) {
    since_look += categories + samples;
    if (since_look > kBetweenLooks) lock.look(), since_look = 0;
    const T* const weights = p.as<T>() + r * p.strides[0];
    for (int64_t c = 0; c < categories; c++)
      row[c] = static_cast<Compute>(weights[c * p.strides[1]]);
    draw_row(row, out.as<int64_t>() + r * samples, samples, lock);
  }
}

// Exponentials in the order of the weights in memory, keys and the largest of those, for so many
// rows at a time; for all where they lie column by column.
template <class T, class Compute>
void draw_without_replacement(const View& out, const View& p, Generator& generator) {
  const int64_t rows = p.sizes[0], categories = p.sizes[1], samples = out.sizes[1];
  const bool by_rows = p.strides[1] == 1;
  const int64_t at_once = by_rows ? std::clamp<int64_t>(kKeysAtOnce / categories, 1, rows) : rows;
  const Scratch<Compute> keys(at_once * categories), largest(at_once * samples);
  const Scratch<Compute> drawn_by_columns(by_rows ? 0 : rows * categories);
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t n = std::min(at_once, rows - begin), count = n * categories;
    const int64_t sizes[] = {n, categories}, strides[] = {categories, 1}, drawn[] = {n, samples},
                  drawn_strides[] = {samples, 1};
    const View key_view{keys.data(), kDTypeOf<Compute>, sizes, strides, count, true};
    View draws = key_view;
    if (!by_rows) draws.data = drawn_by_columns.data();
    random_exponential(draws, 1, generator);
    const T* const weights = p.as<T>() + begin * categories;
    parallel_for(0, count, 1 << 14, [&, keys = keys.data()](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; i++) {
        const int64_t at = by_rows ? i : i / categories + i % categories * rows;
        const auto key = static_cast<Compute>(T(static_cast<Compute>(weights[at]) /
                                                static_cast<Compute>(T(draws.as<Compute>()[at]))));
        keys[i] = key == key ? key : Compute(0);  // 0 / 0: a category that is never drawn
      }
    });
    topk({largest.data(), kDTypeOf<Compute>, drawn, drawn_strides, n * samples, true},
         {out.as<int64_t>() + begin * samples, DType::kInt64, drawn, drawn_strides, n * samples,
          true},
         key_view, samples, /*dim=*/1, /*largest=*/true, /*sorted=*/true);
  }
}

template <class T>
void check_weights(const View& p) {
  const int64_t rows = p.sizes[0], categories = p.sizes[1];
  for (int64_t r = 0; r < rows; r++) {
    check_interrupt();
    const T* const weights = p.as<T>() + r * p.strides[0];
    double sum = 0;
    for (int64_t c = 0; c < categories; c++) {
      const auto weight = static_cast<double>(weights[c * p.strides[1]]);
      TD_CHECK(weight >= 0 && std::isfinite(weight),
               "probability tensor contains either `inf`, `nan` or element < 0");
      sum += weight;
    }
    TD_CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
  }
}

}  // namespace

void multinomial(const View& out, const View& p, bool replacement, Generator& generator) {
  TD_CHECK(is_floating(p.dtype),
           "multinomial only supports floating-point dtypes for input, got: {}",
           scalar_type_name(p.dtype));
  if (out.numel == 0) return;
  with_dtype<Floating>(p.dtype, [&]<class T>(T) {
    check_weights<T>(p);  // all of them before the first draw
    if (replacement && out.sizes[1] > 1)
      draw_with_replacement<T, Wide<T>>(out, p, generator);
    else
      draw_without_replacement<T, Wide<T>>(out, p, generator);
  });
}

}  // namespace taeda::cpu
