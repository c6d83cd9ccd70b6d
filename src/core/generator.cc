#include "taeda/generator.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>

#include "base/fork.h"
#include "taeda/storage.h"

namespace taeda {
namespace {

constexpr int kN = 624, kM = 397;  // Matsumoto & Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998)

// PyTorch's serialized state: its legacy form, whose words took 64 bits, and a cached float that
// the CPU never uses.
struct SavedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[kN];
  double normal_x, normal_y, normal_rho;
  int32_t has_normal;
  float next_float_normal;
  bool has_float_normal;
};
constexpr int64_t kLegacyBytes = 5048, kStateBytes = 5056;
// has_normal ends the legacy form, which is padded to eight bytes; the float follows the padding.
constexpr size_t kFloatOffset = kLegacyBytes;
static_assert(offsetof(SavedState, has_normal) == kLegacyBytes - 8);

// Eight words at a time, lowered by the compiler to what the machine has.
typedef uint32_t Words __attribute__((vector_size(32)));
typedef uint32_t UnalignedWords __attribute__((vector_size(32), aligned(4)));

inline Words load(const uint32_t* p) { return *reinterpret_cast<const UnalignedWords*>(p); }
inline void store(uint32_t* p, Words w) { *reinterpret_cast<UnalignedWords*>(p) = w; }

inline uint32_t twist_word(uint32_t here, uint32_t after, uint32_t far) {
  const uint32_t mixed = (here & 0x80000000u) | (after & 0x7fffffffu);
  return far ^ (mixed >> 1) ^ (after & 1 ? 0x9908b0dfu : 0u);
}
inline Words twist_words(Words here, Words after, Words far) {
  const Words mixed = (here & 0x80000000u) | (after & 0x7fffffffu);
  return far ^ (mixed >> 1) ^ ((0 - (after & 1)) & 0x9908b0dfu);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TD_VECTOR_CLONES __attribute__((target_clones("default", "avx2")))
#else
#define TD_VECTOR_CLONES
#endif

TD_VECTOR_CLONES void twist_state(uint32_t* s) {
  int k = 0;
  for (; k + 8 <= kN - kM; k += 8)
    store(s + k, twist_words(load(s + k), load(s + k + 1), load(s + k + kM)));
  for (; k < kN - kM; k++) s[k] = twist_word(s[k], s[k + 1], s[k + kM]);
  for (; k + 8 < kN; k += 8)
    store(s + k, twist_words(load(s + k), load(s + k + 1), load(s + k + kM - kN)));
  for (; k < kN - 1; k++) s[k] = twist_word(s[k], s[k + 1], s[k + kM - kN]);
  s[kN - 1] = twist_word(s[kN - 1], s[0], s[kM - 1]);
}

TD_VECTOR_CLONES void temper_words(const uint32_t* in, uint32_t* out, int n) {
  const auto temper = [](auto y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  };
  int i = 0;
  for (; i + 8 <= n; i += 8) store(out + i, temper(load(in + i)));
  for (; i < n; i++) out[i] = temper(in[i]);
}

}  // namespace

Generator::Generator(uint64_t seed) { manual_seed(seed); }

void Generator::manual_seed(uint64_t seed) {
  seed_ = seed;
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; i++)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  left_ = 1;
  next_ = 0;
  next_normal_.reset();
}

uint64_t Generator::seed() {
  std::random_device entropy;
  const uint64_t high = entropy();
  // 53 bits, so that the seed survives as a double.
  manual_seed((high << 32 | entropy()) & ((uint64_t{1} << 53) - 1));
  return seed_;
}

void Generator::twist() {
  twist_state(state_);
  left_ = kWords;
  next_ = 0;
}

void Generator::fill(uint32_t* out, int64_t n) {
  while (n > 0) {
    if (left_ == 1) {
      twist();
      left_++;  // random() counts down before it looks
    }
    const int count = static_cast<int>(std::min<int64_t>(n, left_ - 1));
    temper_words(state_ + next_, out, count);
    next_ += static_cast<uint32_t>(count);
    left_ -= count;
    out += count;
    n -= count;
  }
}

double Generator::normal() {
  if (next_normal_) {
    const double value = *next_normal_;
    next_normal_.reset();
    return value;
  }
  const double u1 = uniform(), u2 = uniform();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * std::numbers::pi * u1;
  next_normal_ = radius * std::sin(theta);
  return radius * std::cos(theta);
}

Tensor Generator::get_state() const {
  SavedState saved{};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    saved.seed = seed_;
    saved.left = left_;
    saved.seeded = 1;
    saved.next = next_;
    std::copy(state_, state_ + kWords, saved.words);
    saved.normal_y = next_normal_.value_or(0.0);
    saved.has_normal = next_normal_.has_value();
  }
  Ref<TensorImpl> impl(new TensorImpl(Storage::allocate(kStateBytes, DeviceType::kCPU),
                                      DType::kUInt8, DeviceType::kCPU));
  impl->set_contiguous_layout({kStateBytes});
  std::memset(impl->data(), 0, kStateBytes);
  std::memcpy(impl->data(), &saved, kFloatOffset - 4);
  return Tensor(std::move(impl));
}

void Generator::set_state(const Tensor& state) {
  TD_CHECK_TYPE(state.defined() && state.dtype() == DType::kUInt8 && state.device().is_cpu() &&
                    state.is_contiguous(),
                "RNG state must be a torch.ByteTensor");
  TD_CHECK(state.numel() == kStateBytes || state.numel() == kLegacyBytes,
           "Expected either a CPUGeneratorImplStateLegacy of size {} or a CPUGeneratorImplState of "
           "size {} but found the "
           "input RNG state size to be {}",
           kLegacyBytes, kStateBytes, state.numel());
  SavedState saved{};
  std::memcpy(&saved, state.data_ptr(), kFloatOffset - 4);
  // The words still to be drawn must lie inside the state.
  const bool valid = saved.seeded == 1 && saved.left > 0 && saved.left <= kWords &&
                     saved.next <= kWords &&
                     static_cast<uint64_t>(saved.left) - 1 + saved.next <= kWords;
  TD_CHECK(valid, "Invalid mt19937 state");
  std::lock_guard<std::mutex> lock(mutex_);
  seed_ = saved.seed;
  left_ = saved.left;
  next_ = static_cast<uint32_t>(saved.next);
  for (int i = 0; i < kWords; i++) state_[i] = static_cast<uint32_t>(saved.words[i]);
  next_normal_.reset();
  if (saved.has_normal && state.numel() == kLegacyBytes) {
    // The legacy form keeps the pair that the value is computed from.
    next_normal_ = saved.normal_rho * std::sin(2.0 * std::numbers::pi * saved.normal_x);
  } else if (saved.has_normal) {
    next_normal_ = saved.normal_y;
  }
}

Ref<Generator> Generator::clone() const {
  Ref<Generator> copy = make_ref<Generator>(seed_);
  std::lock_guard<std::mutex> lock(mutex_);
  copy->seed_ = seed_;
  copy->left_ = left_;
  copy->next_ = next_;
  copy->next_normal_ = next_normal_;
  std::copy(state_, state_ + kWords, copy->state_);
  return copy;
}

Generator& default_generator() {
  // Never destroyed, and usable in a forked child.
  static Generator& instance = [&]() -> Generator& {
    auto* generator = new Generator;
    retain(generator);
    protect_over_fork(generator->mutex());
    return *generator;
  }();
  return instance;
}

void manual_seed(uint64_t seed) {
  Generator& generator = default_generator();
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.manual_seed(seed);
}

}  // namespace taeda
