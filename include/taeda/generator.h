// Generator: the stream of random numbers behind rand, randn, dropout and the rest.
//
// The CPU generator is the Mersenne twister mt19937, and operators draw from it in PyTorch's order:
// the same seed gives the same numbers. Operators take the default generator unless given one, and
// lock its mutex while they draw; whoever calls the draw functions directly does the same.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "taeda/ref.h"
#include "taeda/tensor.h"

namespace taeda {

class Generator final : public RefCounted {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;

  explicit Generator(uint64_t seed = kDefaultSeed);

  // Starts the stream over from `seed`. Only the lower 32 bits choose it, as in PyTorch.
  void manual_seed(uint64_t seed);
  // Seeds from the system's entropy and returns the seed.
  uint64_t seed();
  uint64_t initial_seed() const { return seed_; }
  Device device() const { return DeviceType::kCPU; }

  // The whole state as 5,056 bytes, in PyTorch's layout.
  Tensor get_state() const;
  // TypeError unless `state` holds bytes, RuntimeError unless they are a state.
  void set_state(const Tensor& state);
  // A generator that goes on independently from the same state.
  Ref<Generator> clone() const;

  std::mutex& mutex() { return mutex_; }

  // --- draws; the caller holds the mutex ---
  // 32 random bits.
  uint32_t random() {
    if (--left_ == 0) twist();
    return temper(state_[next_++]);
  }
  // 64 random bits: two draws, the first one above.
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }
  // The same numbers as n calls of random(), several times as fast.
  void fill(uint32_t* out, int64_t n);
  // The next n words of the stream before temper(), for who tempers what it needs: somewhere in
  // `buffer`, which has room for room(n) words and is best aligned to 64 bytes.
  const uint32_t* draw(int64_t n, uint32_t* buffer);
  static constexpr int kWords = 624;  // of the twister's state
  static constexpr int64_t room(int64_t n) { return ((n + kWords - 1) / kWords + 1) * kWords; }
  static uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  // In [0, 1), with 24 random bits and one draw, or 53 random bits and two.
  float uniform_float() { return unit(random()); }
  double uniform() { return unit(random64()); }
  // Random bits as a number in [0, 1). Signed on the way, as the processors' conversions are.
  static float unit(uint32_t bits) {
    return static_cast<float>(static_cast<int32_t>(bits & 0xffffff)) * 0x1p-24f;
  }
  static double unit(uint64_t bits) {
    return static_cast<double>(static_cast<int64_t>(bits & ((uint64_t{1} << 53) - 1))) * 0x1p-53;
  }
  // Standard normal by Box and Muller; every second value comes from the pair before.
  double normal();

 private:
  void twist();
  void advance(int64_t n) {
    next_ += static_cast<uint32_t>(n);
    left_ -= static_cast<int32_t>(n);
  }

  uint64_t seed_;
  int32_t left_ = 1;   // draws until the next twist, plus one
  uint32_t next_ = 0;  // index of the next word
  std::optional<double> next_normal_;
  mutable std::mutex mutex_;
  alignas(64) uint32_t state_[kWords];
};

// The process's generator, used where an operator is given none.
Generator& default_generator();
inline Generator& generator_or_default(Generator* generator) {
  return generator ? *generator : default_generator();
}
// Seeds the default generator.
void manual_seed(uint64_t seed);

}  // namespace taeda
