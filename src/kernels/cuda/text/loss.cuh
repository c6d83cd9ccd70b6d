// cross_entropy of rows of scores x and classes t, its gradient, and binary_cross_entropy.
//
//   loss_i = (1 - s) w_t (lse_i - x_it) + s / c sum_k w_k (lse_i - x_ik)
//   lse_i = log sum_k exp x_ik, s = label_smoothing, W = sum_k w_k
//   gx_ik = g_i [((1 - s) w_t + s / c W) exp(x_ik - lse_i) - (1 - s) w_t [k = t] - s / c w_k]
//
// The softmax is never stored. Forward reads x once (twice with smoothing); backward twice, the
// second time mostly from a cache, and writes gx. Losses of rows are added by a reduction. A class
// out of bounds is reported, and its row counts as an ignored one.
#pragma once
#include "kernels/cuda/text/array.cuh"
#include "kernels/cuda/text/loss_args.h"
#include "kernels/cuda/text/reducers.cuh"

namespace taeda::device {

// The class of a row; -1: it does not count.
TD_FN int64_t class_of(const CrossEntropyArgs& a, uint64_t row, bool reports) {
  const int64_t k = a.target[row];
  if (k == a.ignored) return -1;
  if (k >= 0 && k < a.classes) return k;
  if (reports) report(a.message, k, a.classes);
  return -1;
}
template <class Body>
TD_FN void for_each_class(const CrossEntropyArgs& a, const Group& group, Body body) {
  for (int64_t k = group.rank(); k < a.classes; k += a.threads) body(k);
}

template <class T>
TD_FN void cross_entropy_kernel(const CrossEntropyArgs& a) {
  const Group group{a.threads};
  for (uint64_t row = group.first(); row < a.n; row += group.step()) {
    const uint64_t first = row * static_cast<uint64_t>(a.classes);
    using Online = LogSumExp<T>;
    typename Online::State s = Online::identity();
    for_each_class(a, group, [&](int64_t k) { Online::take(s, get<T>(a.x, first + k), 0, 0); });
    s = group.reduce(s, Online::combine);
    // The maximum is kept apart: beside a large one the logarithm would be lost.
    const double log_sum = std::isfinite(s.high) ? std::log(static_cast<double>(s.sum))
                                                 : std::numeric_limits<double>::quiet_NaN();
    TwoSums all{};  // of the weights, and of the weighted distances from the maximum
    if (a.smoothing > 0) {
      for_each_class(a, group, [&](int64_t k) {
        const double w = get<T>(a.weight, k, T(1));
        all = add_sums(all, {w, w * static_cast<double>(get<T>(a.x, first + k) - s.high)});
      });
      all = group.reduce(all, add_sums);
    }
    if (group.rank() != 0) continue;
    set(a.lse, row, static_cast<double>(s.high) + log_sum);
    const int64_t k = class_of(a, row, true);
    double loss = 0, weight = 0;
    if (k >= 0) {
      weight = get<T>(a.weight, k, T(1));
      const double x = get<T>(a.x, first + k);
      loss = (1 - a.smoothing) * weight * (static_cast<double>(s.high) - x + log_sum);
      if (a.smoothing > 0)
        loss += a.smoothing / static_cast<double>(a.classes) * (all.first * log_sum - all.second);
    }
    set(a.out, row, loss);
    a.sums[row] = loss;
    a.sums[a.n + row] = weight;
  }
}

template <class T>
TD_FN void cross_entropy_backward_kernel(const CrossEntropyArgs& a) {
  const Group group{a.threads};
  for (uint64_t row = group.first(); row < a.n; row += group.step()) {
    const uint64_t first = row * static_cast<uint64_t>(a.classes);
    const int64_t target = class_of(a, row, group.rank() == 0);
    if (target < 0) {
      for_each_class(a, group, [&](int64_t k) { set(a.out, first + k, T(0)); });
      continue;
    }
    const T lse = get<T>(a.lse, row);
    const auto exponential = [&](int64_t k) { return std::exp(get<T>(a.x, first + k) - lse); };
    // Of exp(x - lse), which would be 1 had lse not been rounded, and of the weights.
    TwoSums all{};
    for_each_class(a, group, [&](int64_t k) {
      all = add_sums(all, {exponential(k), a.smoothing > 0 ? get<T>(a.weight, k, T(1)) : T(0)});
    });
    all = group.reduce(all, add_sums);
    T g = get<T>(a.gy, a.has_each ? row : 0);
    if (a.is_mean) g /= get<T>(a.total, 0);
    const T smoothing = static_cast<T>(a.smoothing), share = smoothing / static_cast<T>(a.classes);
    const T picked = (T(1) - smoothing) * get<T>(a.weight, target, T(1));
    const T scale = g * (picked + share * static_cast<T>(all.second)) / static_cast<T>(all.first);
    for_each_class(a, group, [&](int64_t k) {
      T gx = scale * exponential(k);
      if (smoothing > 0) gx -= g * share * get<T>(a.weight, k, T(1));
      set(a.out, first + k, k == target ? gx - g * picked : gx);
    });
  }
}

// out = (t - 1) max(log(1 - x), -100) - t max(log x, -100); three passes over memory.
template <class T>
TD_FN void binary_cross_entropy_kernel(const BinaryCrossEntropyArgs& a) {
  for (uint64_t i = first_index(); i < a.n; i += index_step()) {
    const T x = get<T>(a.x, i), t = get<T>(a.target, i);
    if (!(x >= T(0) && x <= T(1))) report(a.message, 0, 0);
    if (!(t >= T(0) && t <= T(1))) report(a.target_message, 0, 0);
    set(a.out, i,
        (t - T(1)) * std::max(std::log1p(-x), T(-100)) - t * std::max(std::log(x), T(-100)));
  }
}

}  // namespace taeda::device
