// Categories drawn by weight, a group of threads a row.
//
// Without replacement, or one: those of the largest weight / Exp(1) [Efraimidis and Spirakis 2006].
// With: the cumulative shares of a row are searched for a uniform number. Weights are read twice at
// most, keys or shares written once.
#pragma once
#include "kernels/cuda/text/group.cuh"
#include "kernels/cuda/text/philox.cuh"

namespace taeda::device {

// What a group finds out about a row.
struct RowOfWeights {
  double sum, best;
  int64_t index;  // of the best key; the first of equal ones
  int64_t wrong;  // whether a weight is negative or not finite
};
TD_FN RowOfWeights combined(const RowOfWeights& a, const RowOfWeights& b) {
  const bool second = b.best > a.best || (b.best == a.best && b.index < a.index);
  return {a.sum + b.sum, second ? b.best : a.best, second ? b.index : a.index, a.wrong | b.wrong};
}

// Checks rows, and makes keys or shares of them; with one sample also draws it.
template <class T>
TD_FN void multinomial_rows_kernel(const MultinomialArgs& args) {
  const Group group{args.threads};
  for (uint64_t row = group.first(); row < args.rows; row += group.step()) {
    const uint64_t begin = row * args.n * args.itemsize;
    const auto each = [&](auto body) {
      for (uint64_t i = group.rank(); i < args.n; i += args.threads)
        body(i, begin + i * args.itemsize);
    };
    RowOfWeights found{0, -1, 0, 0};
    each([&](uint64_t i, uint64_t at) {
      const T weight = load<T>(args.weights + at, args.type);
      RowOfWeights one{weight, -1, static_cast<int64_t>(i),
                       !(weight >= 0 && std::isfinite(weight))};
      if (args.keys) {
        char* const p = args.keys + at;
        const T key = weight / load<T>(p, args.type);
        store(p, args.type, key == key ? key : T(0));
        one.best = load<T>(p, args.type);
      }
      found = combined(found, one);
    });
    found = group.reduce(found, combined);
    if (group.rank() == 0) {
      if (found.wrong) report(args.not_finite, 0, 0);
      if (!found.wrong && !(found.sum > 0)) report(args.no_mass, 0, 0);
      if (args.keys && args.samples == 1) args.out[row] = found.index;
    }
    if (!args.shares) continue;
    const T sum = static_cast<T>(found.sum);
    each([&](uint64_t, uint64_t at) {
      store(args.shares + at, args.type, load<T>(args.weights + at, args.type) / sum);
    });
  }
}

// The threads of a row's samples go on to row + turns, ... by further draws.
TD_FN void multinomial_search_kernel(const MultinomialArgs& args) {
  const auto [key, counter] = start(args.philox);
  for (uint64_t i = first_index(); i < args.rows * args.samples; i += index_step()) {
    const uint64_t row = i / args.samples, sample = i % args.samples;
    const uint64_t thread = row % args.turns * args.in_row + sample;
    const float u = unit(philox(counter + row / args.turns, thread, key).at[0]);
    const double wanted = rounded(u, args.type);
    const uint64_t first = row * args.n;
    const auto number = [&](const char* from, uint64_t k) {
      return load<double>(from + (first + k) * args.itemsize, args.type);
    };
    uint64_t low = 0, high = args.n;
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      if (number(args.cumulative, middle) < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    if (low == args.n) low--;
    while (low > 0 && number(args.shares, low) == 0) low--;
    args.out[i] = static_cast<int64_t>(low);
  }
}

}  // namespace taeda::device
