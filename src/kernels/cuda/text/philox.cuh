// Philox4x32-10 [Salmon et al. 2011]: random words as a function of a seed, the number of the
// thread and a counter; and the numbers that curand makes of them.
#pragma once
#include "kernels/cuda/text/random_args.h"
#include "kernels/cuda/text/sincospi.cuh"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

// PyTorch's kernels compute with a device's approximations where numbers are float.
namespace fast {
#if defined(__CUDA_ARCH__)
TD_FN float log(float x) { return __logf(x); }
TD_FN float exp(float x) { return __expf(x); }
TD_FN float sin(float x) { return __sinf(x); }
TD_FN float cos(float x) { return __cosf(x); }
TD_FN float tan(float x) { return __tanf(x); }
#else
TD_FN float log(float x) { return std::log(x); }
TD_FN float exp(float x) { return std::exp(x); }
TD_FN float sin(float x) { return std::sin(x); }
TD_FN float cos(float x) { return std::cos(x); }
TD_FN float tan(float x) { return std::tan(x); }
#endif
TD_FN double log(double x) { return std::log(x); }
TD_FN double exp(double x) { return std::exp(x); }
TD_FN double tan(double x) { return std::tan(x); }
}  // namespace fast

// Where a kernel's counters begin.
struct Start {
  uint64_t key, counter;
};
TD_FN Start start(const PhiloxState& state) {
  if (!state.captured) return {state.seed, state.offset / 4};
  return {state.captured[0], (state.captured[1] + state.offset) / 4};
}

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
      at[i] = radius * fast::sin(angle);
      at[i + 1] = radius * fast::cos(angle);
    }
  }
};
template <>
struct Normals<double> {
  static constexpr int kCount = 2;
  double at[2];
  TD_FN explicit Normals(const Words4& w) {
    const double radius = std::sqrt(-2.0 * std::log(unit(w.at[0], w.at[1])));
    sine_cosine_of_pi(2 * unit(w.at[2], w.at[3]), &at[0], &at[1]);
    at[0] *= radius;
    at[1] *= radius;
  }
};

// The words of one subsequence, one after the other.
class WordStream {
 public:
  TD_FN WordStream(Start from, uint64_t thread) : from_(from), thread_(thread) {}
  TD_FN uint32_t next() {
    if (left_ == 0) words_ = philox(from_.counter++, thread_, from_.key), left_ = 4;
    left_--;
    const uint32_t word = words_.at[0];
    words_.at[0] = words_.at[1], words_.at[1] = words_.at[2], words_.at[2] = words_.at[3];
    return word;
  }
  TD_FN float uniform() { return unit(next()); }

 private:
  Start from_;
  uint64_t thread_;
  Words4 words_{};
  int left_ = 0;
};

}  // namespace taeda::device
