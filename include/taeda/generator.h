// Generator: the stream of random numbers behind rand, randn, dropout and the rest.
//
// Mt19937 is the CPU's: the Mersenne twister, from which operators draw in PyTorch's order, so that
// the same seed gives the same numbers. Philox is a CUDA device's: its numbers are a function of
// the seed and of a counter, so that threads need no state; the generator only keeps how far the
// counter is. Operators take their device's default generator unless given one, and lock its mutex
// while they draw; whoever calls the draw functions directly does the same.
//
//   const Ref<Mt19937> own = make_ref<Mt19937>(7), same = make_ref<Mt19937>(7);
//   assert(equal(rand({3}, own.get()), rand({3}, same.get())));
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>

#include "taeda/device.h"
#include "taeda/ref.h"

namespace taeda {

class Mt19937;
class Tensor;

// One stream of random numbers; the same seed gives the same numbers on every machine and for every
// number of threads. Copies are made by clone() only.
//
//   manual_seed(1);
//   const Tensor a = rand({4});
//   manual_seed(1);
//   assert(equal(a, rand({4})));
//   const Ref<Generator> copy = default_generator().clone();
//   assert(equal(copy->get_state(), default_generator().get_state()));
class Generator : public RefCounted {
 public:
  // PyTorch's for CUDA's default generators and for those that programs make. The CPU's default one
  // begins with a seed from the system's entropy: each run of a program that never seeds differs.
  static constexpr uint64_t kDefaultSeed = 67280421310721;

  // Starts the stream over from `seed`. Takes no lock: other threads must not draw meanwhile, or
  // the caller holds the mutex, as taeda::manual_seed() does.
  virtual void manual_seed(uint64_t seed) = 0;
  // Seeds from the system's entropy and returns the seed, for a run that is to be repeatable after
  // the fact: manual_seed() of it gives the same numbers.
  uint64_t seed();
  uint64_t initial_seed() const { return seed_; }
  Device device() const { return device_; }

  // The whole state as bytes, in PyTorch's layout: a copy, a uint8 tensor on the CPU. What was
  // drawn after it can be drawn again.
  //
  //   const Tensor before = default_generator().get_state();
  //   const Tensor a = randn({3});
  //   default_generator().set_state(before);
  //   assert(equal(a, randn({3})));
  virtual Tensor get_state() const = 0;
  // TypeError unless `state` holds bytes, RuntimeError unless they are a state.
  virtual void set_state(const Tensor& state) = 0;
  // A generator that goes on independently from the same state: both give the same numbers next.
  virtual Ref<Generator> clone() const = 0;
  // How far the counter is; RuntimeError for generators without one.
  virtual uint64_t offset() const;
  virtual void set_offset(uint64_t offset);

  // What the CPU's kernels draw from; the caller holds the mutex. They stand in for a device
  // without kernels of its own: its generator then hands out a twister whose seed is drawn from it.
  virtual Mt19937& twister() = 0;

  std::mutex& mutex() const { return mutex_; }

 protected:
  Generator(Device device, uint64_t seed) : seed_(seed), device_(device) {}

  uint64_t seed_;

 private:
  Device device_;
  mutable std::mutex mutex_;
};

// The Mersenne twister mt19937 (Matsumoto & Nishimura 1998), word for word std::mt19937. Only the
// lower 32 bits of a seed choose its stream, and its state is 5,056 bytes, as in PyTorch. Period
// 2^19937 - 1; not for cryptography.
//
//   assert(Mt19937(5489).random() == 3499211612u);
//   Mt19937& stream = default_generator();
//   const std::lock_guard<std::mutex> lock(stream.mutex());
//   assert(stream.uniform() < 1);
class Mt19937 final : public Generator {
 public:
  explicit Mt19937(uint64_t seed = kDefaultSeed);

  void manual_seed(uint64_t seed) override;
  Tensor get_state() const override;
  void set_state(const Tensor& state) override;
  Ref<Generator> clone() const override;
  Mt19937& twister() override { return *this; }

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
  // `buffer`, which has buffer_words(n) words and is best aligned to 64 bytes.
  const uint32_t* draw(int64_t n, uint32_t* buffer);
  static constexpr int kWords = 624;  // of the twister's state
  // The numbers that random() gives next, `most` or fewer: as many as the result says. skip() draws
  // them, all or the first ones.
  int64_t peek(uint32_t* out, int64_t most);
  void skip(int64_t n) { advance(n); }
  static constexpr int64_t buffer_words(int64_t n) {
    return ((n + kWords - 1) / kWords + 1) * kWords;
  }
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

  int32_t left_ = 1;   // draws until the next twist, plus one
  uint32_t next_ = 0;  // index of the next word
  std::optional<double> next_normal_;
  alignas(64) uint32_t state_[kWords];
};

// Philox4x32-10 (Salmon et al. 2011), laid out as PyTorch's CUDA generator: the seed is the key;
// each thread of a kernel has a counter of its own, whose lower half goes on from the generator's
// offset. The state is the seed and the offset, 16 bytes.
class Philox final : public Generator {
 public:
  explicit Philox(Device device, uint64_t seed = kDefaultSeed) : Generator(device, seed) {}

  void manual_seed(uint64_t seed) override;
  Tensor get_state() const override;
  void set_state(const Tensor& state) override;
  Ref<Generator> clone() const override;
  uint64_t offset() const override { return offset_; }
  // A multiple of 4.
  void set_offset(uint64_t offset) override;
  Mt19937& twister() override;

  // The offset of a kernel whose threads draw up to `draws` numbers each; the next one's comes
  // after it. The caller holds the mutex.
  uint64_t take(uint64_t draws);

  // Four words of 32 random bits: a function of its arguments alone, which any thread may call. The
  // counter and the thread's number are the 128 bits that are enciphered.
  //
  //   assert(Philox::block(0, 0, 0)[0] == 0x6627e8d5u);   // Random123's test vector
  static std::array<uint32_t, 4> block(uint64_t counter, uint64_t thread, uint64_t key);

 private:
  uint64_t offset_ = 0;
  Ref<Generator> twister_;
};

// The generators used where an operator is given none: the CPU's, and a device's.
Mt19937& default_generator();
Generator& default_generator(Device device);
inline Generator& generator_or_default(Generator* generator) {
  return generator ? *generator : default_generator();
}
// RuntimeError for a generator of another device.
Generator& generator_or_default(Generator* generator, Device device);
// Seeds the default generators of all devices; those of devices that were not used yet when they
// are first. Which numbers a program draws depends on the order of its operators, so threads that
// draw from one generator do not give the same numbers twice: give each its own.
void manual_seed(uint64_t seed);

}  // namespace taeda
