// Random numbers by Philox, dealt to threads as PyTorch's CUDA kernels deal them: thread t has the
// numbers of subsequence t, a draw of four words gives elements t, t + threads, t + 2 threads, ...
// (of double, two). An element is written once.
#pragma once
#include "kernels/cuda/text/philox.cuh"

namespace taeda::device {

// body(numbers of a draw, k) is element number k of each draw.
template <class Draw, class Body>
TD_FN void deal(const RandomArgs& a, Body body) {
  const uint64_t thread = first_index();
  if (thread >= a.threads) return;
  auto [key, counter] = start(a.philox);
  for (uint64_t i = thread; i < a.walk.count; i += a.threads * Draw::kCount, counter++) {
    const Draw draw(philox(counter, thread, key));
#pragma unroll
    for (int k = 0; k < Draw::kCount; k++) {
      const uint64_t at = i + static_cast<uint64_t>(k) * a.threads;
      if (at < a.walk.count) store(a.out + offsets(a.walk, at)[0], a.type, body(draw, k));
    }
  }
}

// In [a, b), also once rounded to half precision.
template <class T>
TD_FN void uniform_kernel(const RandomArgs& args) {
  const ElementType type = args.type;
  const T low = rounded(static_cast<T>(args.a), type), high = rounded(static_cast<T>(args.b), type);
  const T width = rounded(high - low, type);
  deal<Uniforms<T>>(args, [=](const auto& draw, int k) {
    const T x = rounded(draw.at[k] * width + low, type);
    return x == high ? low : x;
  });
}
template <class T>
TD_FN void normal_kernel(const RandomArgs& args) {
  const T mean = static_cast<T>(args.a), std = static_cast<T>(args.b);
  deal<Normals<T>>(args, [=](const auto& draw, int k) { return draw.at[k] * std + mean; });
}
template <class T>
TD_FN void exponential_kernel(const RandomArgs& args) {
  const T rate = static_cast<T>(args.a), half = std::numeric_limits<T>::epsilon() / 2;
  deal<Uniforms<T>>(args, [=](const auto& draw, int k) {
    const T x = draw.at[k], logarithm = x >= T(1) - half ? -half : fast::log(x);
    return T(-1) / rate * logarithm;
  });
}
// 1 with probability a.
template <class T>
TD_FN void bernoulli_kernel(const RandomArgs& args) {
  const T p = static_cast<T>(args.a);
  deal<Uniforms<T>>(args, [=](const auto& draw, int k) { return draw.at[k] < p ? T(1) : T(0); });
}

template <class T>
TD_FN void log_normal_kernel(const RandomArgs& args) {
  const T mean = static_cast<T>(args.a), std = static_cast<T>(args.b);
  deal<Normals<T>>(args,
                   [=](const auto& draw, int k) { return fast::exp(draw.at[k] * std + mean); });
}
// median + sigma tan(pi (u - 1/2)); of float, u keeps away from the poles.
template <class T>
TD_FN void cauchy_kernel(const RandomArgs& args) {
  const T median = static_cast<T>(args.a), sigma = static_cast<T>(args.b);
  const T pi = static_cast<T>(kTwoPi / 2), edge = std::numeric_limits<T>::epsilon();
  deal<Uniforms<T>>(args, [=](const auto& draw, int k) {
    T u = draw.at[k];
    if constexpr (sizeof(T) == 4) u = u < edge ? edge : u > 1 - edge ? 1 - edge : u;
    return median + sigma * fast::tan(pi * (u - T(0.5)));
  });
}
// Trials until the first success, of probability a; b is log(1 - a). PyTorch takes the logarithm of
// a float by a device's approximation, after rounding 1 - a; that of 1, which it divides by, too,
// is not taken over.
template <class T>
TD_FN void geometric_kernel(const RandomArgs& args) {
  T log_fail = static_cast<T>(args.b);
  if constexpr (sizeof(T) == 4) {
    const T fail = 1 - static_cast<T>(args.a);
    if (fail < 1) log_fail = fast::log(fail);
  }
  deal<Uniforms<T>>(
      args, [=](const auto& draw, int k) { return std::ceil(fast::log(draw.at[k]) / log_fail); });
}

struct Integers32 {
  static constexpr int kCount = 4;
  Words4 words;
  TD_FN explicit Integers32(const Words4& w) : words(w) {}
  TD_FN uint64_t operator[](int k) const { return words.at[k]; }
};
struct Integers64 {
  static constexpr int kCount = 2;
  Words4 words;
  TD_FN explicit Integers64(const Words4& w) : words(w) {}
  TD_FN uint64_t operator[](int k) const {
    return uint64_t{words.at[2 * k]} << 32 | words.at[2 * k + 1];
  }
};
// base + an integer in [0, range).
template <class Draw>
TD_FN void integers_kernel(const RandomArgs& args) {
  deal<Draw>(args, [&](const Draw& draw, int k) {
    const uint64_t x = draw[k];
    return static_cast<int64_t>((args.range == 0 ? x : x % args.range) +
                                static_cast<uint64_t>(args.base));
  });
}

// 1 with the probability that operand 1 has for it: thread t gives elements 4 t to 4 t + 3 by one
// draw of floats. The probability is read as double, or as float (`a` 0).
TD_FN void bernoulli_each_kernel(const ChanceArgs& args) {
  const auto [key, counter] = start(args.philox);
  for (uint64_t t = first_index(); 4 * t < args.walk.count; t += index_step()) {
    const Uniforms<float> draw(philox(counter, t, key));
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const uint64_t i = 4 * t + static_cast<uint64_t>(k);
      if (i >= args.walk.count) break;
      const Offsets<2> at = offsets(args.walk, i);
      double p = load<double>(args.p + at[1], args.p_type);
      if (!args.wide) p = static_cast<float>(p);
      if (!(p >= 0 && p <= 1)) report(args.message, 0, 0);
      store(args.out + at[0], args.type, draw.at[k] <= p ? 1.0f : 0.0f);
    }
  }
}

// Runs of equal keys, which are short, are shuffled by their first thread (Fisher and Yates), with
// its subsequence's words, as PyTorch's randperm does it.
TD_FN void shuffle_ties_kernel(const TiesArgs& a) {
  for (uint64_t i = first_index(); i + 1 < a.n; i += index_step()) {
    const int64_t key = a.keys[i];
    if (a.keys[i + 1] != key || (i > 0 && a.keys[i - 1] == key)) continue;
    uint64_t count = 2;
    while (i + count < a.n && a.keys[i + count] == key) count++;
    WordStream words(start(a.philox), i);
    for (uint64_t last = count - 1; last > 0; last--) {
      const uint64_t other = words.next() % (last + 1);
      const int64_t moved = a.order[i + last];
      a.order[i + last] = a.order[i + other];
      a.order[i + other] = moved;
    }
  }
}

}  // namespace taeda::device
