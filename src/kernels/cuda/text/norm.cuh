// layer_norm, group_norm and batch_norm with their gradients.
//
//   y = (x - mean) rstd w + b, rstd = 1 / sqrt(var + eps)
//   gx = rstd (g - mean(g) - xhat mean(g xhat)), g = gy w, xhat = (x - mean) rstd
//   gw = sum gy xhat, gb = sum gy
//
// Statistics are of a row (layer_norm, group_norm) or of a channel (batch_norm).
#pragma once
#include "kernels/cuda/text/array.cuh"
#include "kernels/cuda/text/norm_args.h"
#include "kernels/cuda/text/reducers.cuh"

namespace taeda::device {

// --- by row ---

template <class Body>
TD_FN void for_each_norm_row(const NormArgs& a, Body body) {
  const Group group{a.threads};
  for (uint64_t row = group.first(); row < a.rows; row += group.step()) body(row, group);
}
// Which parameter element i has.
TD_FN uint32_t parameter(const NormArgs& a, uint64_t row, uint32_t i) {
  return static_cast<uint32_t>(row % a.groups) * a.per_group + divide(i, a.positions);
}

template <class T>
TD_FN void norm_kernel(const NormArgs& a) {
  for_each_norm_row(a, [&](uint64_t row, const Group& group) {
    using M = Moments<T, false>;
    typename M::State s = M::identity();
    for (uint32_t i = group.rank(); i < a.n; i += a.threads)
      M::take(s, get<T>(a.x, row * a.n + i), 0, 0);
    s = group.reduce(s, M::combine);
    const double variance = s.m2 < 0 ? 0 : s.m2 / s.count;
    const T mean = static_cast<T>(s.mean), rstd = static_cast<T>(1 / std::sqrt(variance + a.eps));
    for (uint32_t i = group.rank(); i < a.n; i += a.threads) {
      const uint32_t p = parameter(a, row, i);
      const T xhat = (get<T>(a.x, row * a.n + i) - mean) * rstd;
      set(a.out, row * a.n + i, xhat * get<T>(a.weight, p, T(1)) + get<T>(a.bias, p));
    }
    if (group.rank() == 0) {
      set(a.mean, row, mean);
      set(a.rstd, row, rstd);
    }
  });
}

// out is gx.
template <class T>
TD_FN void norm_backward_kernel(const NormArgs& a) {
  for_each_norm_row(a, [&](uint64_t row, const Group& group) {
    const T mean = get<T>(a.mean, row), rstd = get<T>(a.rstd, row);
    const auto gradient = [&](uint32_t i) {
      return get<T>(a.gy, row * a.n + i) * get<T>(a.weight, parameter(a, row, i), T(1));
    };
    const auto xhat = [&](uint32_t i) { return (get<T>(a.x, row * a.n + i) - mean) * rstd; };
    TwoSums s{};
    for (uint32_t i = group.rank(); i < a.n; i += a.threads) {
      const T g = gradient(i);
      s = add_sums(s, {g, g * xhat(i)});
    }
    s = group.reduce(s, add_sums);
    const T first = static_cast<T>(s.first / a.n), second = static_cast<T>(s.second / a.n);
    for (uint32_t i = group.rank(); i < a.n; i += a.threads)
      set(a.out, row * a.n + i, rstd * (gradient(i) - first - xhat(i) * second));
  });
}

// --- sums by parameter ---

template <class T>
TD_FN void norm_sums_finish(const NormSumsArgs& a, uint64_t p, const TwoSums& s) {
  set(a.gw, p, static_cast<T>(s.second));
  set(a.gb, p, static_cast<T>(s.first));
  if (!a.sums) return;
  a.sums[p] = s.first;
  a.sums[a.kept.count + p] = s.second;
}

template <class T>
TD_FN void norm_sums_kernel(const NormSumsArgs& a) {
  const Group group{a.threads};
  const uint64_t tasks = a.kept.count * a.splits;
  for (uint64_t task = group.first(); task < tasks; task += group.step()) {
    const uint64_t part = task / a.kept.count, p = task % a.kept.count;
    const Offsets<3> at = offsets(a.kept, p);
    const uint64_t begin = part * a.split, stop = begin + a.split;
    const uint64_t end = stop < a.reduced.count ? stop : a.reduced.count;
    TwoSums s{};
    for (uint64_t i = begin + group.rank(); i < end; i += a.threads) {
      const Offsets<3> by = offsets(a.reduced, i);
      const auto stat = static_cast<uint64_t>(at[2] + by[2]);
      const T given = get<T>(a.scale, stat);
      const T rstd = a.is_variance ? T(1) / std::sqrt(given + static_cast<T>(a.eps)) : given;
      const T g = load<T>(a.gy.data + at[1] + by[1], a.gy.type);
      const T x = load<T>(a.x.data + at[0] + by[0], a.x.type);
      s = add_sums(s, {g, g * ((x - get<T>(a.mean, stat)) * rstd)});
    }
    s = group.reduce(s, add_sums);
    if (group.rank() != 0) continue;
    if (a.partial)
      reinterpret_cast<TwoSums*>(a.partial)[task] = s;
    else
      norm_sums_finish<T>(a, p, s);
  }
}
template <class T>
TD_FN void norm_sums_join_kernel(const NormSumsArgs& a) {
  for (uint64_t p = first_index(); p < a.kept.count; p += index_step()) {
    TwoSums s{};
    for (uint32_t part = 0; part < a.splits; part++)
      s = add_sums(s, reinterpret_cast<const TwoSums*>(a.partial)[part * a.kept.count + p]);
    norm_sums_finish<T>(a, p, s);
  }
}

// --- by channel ---

template <class T>
TD_FN void channel_kernel(const ChannelArgs& a) {
  T* const to = reinterpret_cast<T*>(a.coefficients);
  for (uint64_t c = first_index(); c < a.channels; c += index_step()) {
    const double rstd = 1 / std::sqrt(get<double>(a.var, c) + a.eps);
    const double scale = get<double>(a.weight, c, 1) * rstd;
    const bool correct = a.sums && a.training;
    to[c] = static_cast<T>(a.sums ? scale : 0);
    to[a.channels + c] = static_cast<T>(correct  ? -scale * rstd * a.sums[a.channels + c] / a.count
                                        : a.sums ? 0
                                                 : scale);
    to[2 * a.channels + c] = get<T>(a.mean, c);
    to[3 * a.channels + c] =
        correct ? static_cast<T>(-scale * a.sums[c] / a.count) : get<T>(a.bias, c);
  }
}

template <class T>
TD_FN void apply_kernel(const ApplyArgs& a) {
  const T* const from = reinterpret_cast<const T*>(a.coefficients);
  for (uint64_t i = first_index(); i < a.walk.count; i += index_step()) {
    const Offsets<4> at = offsets(a.walk, i);
    const int64_t c = at[3];
    const T x = load<T>(a.x.data + at[1], a.x.type);
    T y = from[a.channels + c] * (x - from[2 * a.channels + c]) + from[3 * a.channels + c];
    if (a.gy.data) y += from[c] * load<T>(a.gy.data + at[2], a.gy.type);
    store(a.out.data + at[0], a.out.type, y);
  }
}

}  // namespace taeda::device
