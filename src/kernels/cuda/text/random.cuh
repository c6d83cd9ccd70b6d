// Random numbers by Philox4x32-10 [Salmon et al. 2011], dealt to threads as PyTorch's CUDA kernels
// deal them: thread t has the numbers of subsequence t, a draw of four words gives elements t,
// t + threads, t + 2 threads, ... (of double, two).
#pragma once
#include "kernels/cuda/text/random_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

struct Words4 {
  uint32_t at[4];
};
TD_FN Words4 philox(uint64_t counter, uint64_t thread, uint64_t key) {
  uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                   static_cast<uint32_t>(thread), static_cast<uint32_t>(thread >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const uint64_t p = uint64_t{0xD2511F53u} * c[0], q = uint64_t{0xCD9E8D57u} * c[2];
    const uint32_t first = static_cast<uint32_t>(q >> 32) ^ c[1] ^ k0,
                   third = static_cast<uint32_t>(p >> 32) ^ c[3] ^ k1;
    c[1] = static_cast<uint32_t>(q);
    c[3] = static_cast<uint32_t>(p);
    c[0] = first;
    c[2] = third;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

// In (0, 1], as curand's.
TD_FN float unit(uint32_t x) { return static_cast<float>(x) * 0x1p-32f + 0x1p-33f; }
TD_FN double unit(uint32_t x, uint32_t y) {
  return static_cast<double>(x ^ uint64_t{y} << 21) * 0x1p-53 + 0x1p-54;
}

// What a draw of four words gives: kCount numbers of type T.
template <class T>
struct Uniforms;
template <>
struct Uniforms<float> {
  static constexpr int kCount = 4;
  float at[4];
  TD_FN explicit Uniforms(const Words4& w)
      : at{unit(w.at[0]), unit(w.at[1]), unit(w.at[2]), unit(w.at[3])} {}
};
template <>
struct Uniforms<double> {
  static constexpr int kCount = 2;
  double at[2];
  TD_FN explicit Uniforms(const Words4& w) : at{unit(w.at[0], w.at[1]), unit(w.at[2], w.at[3])} {}
};

inline constexpr double kTwoPi = 6.283185307179586476925286766559;

// Pairs of normal numbers from pairs of uniform ones [Box and Muller 1958].
template <class T>
struct Normals;
template <>
struct Normals<float> {
  static constexpr int kCount = 4;
  float at[4];
  TD_FN explicit Normals(const Words4& w) {
    constexpr float kStep = static_cast<float>(0x1p-32 * kTwoPi);
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const float radius = std::sqrt(-2.0f * std::log(unit(w.at[i])));
      const float angle = static_cast<float>(w.at[i + 1]) * kStep + kStep / 2;
      at[i] = radius * std::sin(angle);
      at[i + 1] = radius * std::cos(angle);
    }
  }
};
template <>
struct Normals<double> {
  static constexpr int kCount = 2;
  double at[2];
  TD_FN explicit Normals(const Words4& w) {
    const double radius = std::sqrt(-2.0 * std::log(unit(w.at[0], w.at[1])));
    const double angle = unit(w.at[2], w.at[3]) * kTwoPi;
    at[0] = radius * std::sin(angle);
    at[1] = radius * std::cos(angle);
  }
};

// body(numbers of a draw, k) is element number k of each draw.
template <class Draw, class Body>
TD_FN void deal(const RandomArgs& a, Body body) {
  const uint64_t thread = first_index();
  if (thread >= a.threads) return;
  uint64_t counter = a.offset / 4;
  for (uint64_t i = thread; i < a.walk.count; i += a.threads * Draw::kCount, counter++) {
    const Draw draw(philox(counter, thread, a.seed));
#pragma unroll
    for (int k = 0; k < Draw::kCount; k++) {
      const uint64_t at = i + static_cast<uint64_t>(k) * a.threads;
      if (at < a.walk.count) store(a.out + offsets(a.walk, at)[0], a.type, body(draw, k));
    }
  }
}

// In [a, b).
template <class T>
TD_FN void uniform_kernel(const RandomArgs& args) {
  const T low = static_cast<T>(args.a), high = static_cast<T>(args.b), width = high - low;
  deal<Uniforms<T>>(args, [=](const auto& draw, int k) {
    const T x = draw.at[k] * width + low;
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
    const T x = draw.at[k], logarithm = x >= T(1) - half ? -half : std::log(x);
    return T(-1) / rate * logarithm;
  });
}
// 1 with probability a.
template <class T>
TD_FN void bernoulli_kernel(const RandomArgs& args) {
  const T p = static_cast<T>(args.a);
  deal<Uniforms<T>>(args, [=](const auto& draw, int k) { return draw.at[k] < p ? T(1) : T(0); });
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

}  // namespace taeda::device
