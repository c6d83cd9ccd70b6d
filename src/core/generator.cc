#include "taeda/generator.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>

#include "base/fork.h"
#include "core/mersenne.h"
#include "taeda/storage.h"

namespace taeda {
namespace {

// PyTorch's serialized state: its legacy form, whose words took 64 bits, and a cached float that
// the CPU never uses.
struct SavedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[Generator::kWords];
  double normal_x, normal_y, normal_rho;
  int32_t has_normal;
  float next_float_normal;
  bool has_float_normal;
};
constexpr int64_t kLegacyBytes = 5048, kStateBytes = 5056;
// has_normal ends the legacy form, which is padded to eight bytes; the float follows the padding.
constexpr size_t kFloatOffset = kLegacyBytes;
static_assert(offsetof(SavedState, has_normal) == kLegacyBytes - 8);

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
  alignas(64) uint32_t words[2 * kWords];
  std::copy(state_, state_ + kWords, words);
  mersenne::twist(words, 1);
  std::copy(words + kWords, words + 2 * kWords, state_);
  left_ = kWords;
  next_ = 0;
}

const uint32_t* Generator::draw(int64_t n, uint32_t* buffer) {
  const int64_t have = left_ - 1, blocks = (n - have + kWords - 1) / kWords;
  if (n <= have) {
    std::copy(state_ + next_, state_ + next_ + n, buffer);
    advance(n);
    return buffer;
  }
  std::copy(state_, state_ + kWords, buffer);
  mersenne::twist(buffer, blocks);
  uint32_t* const first = buffer + kWords - have;
  // Where they are already, but for a state that ends early.
  std::copy(state_ + next_, state_ + next_ + have, first);
  const uint32_t* const last = buffer + blocks * kWords;
  std::copy(last, last + kWords, state_);
  left_ = kWords + 1;
  next_ = 0;
  advance(n - have - (blocks - 1) * kWords);
  return first;
}

void Generator::fill(uint32_t* out, int64_t n) {
  const int64_t have = std::min<int64_t>(n, left_ - 1);
  mersenne::temper(state_ + next_, out, have);
  advance(have);
  constexpr int64_t kBlocks = 4;
  alignas(64) uint32_t buffer[room(kBlocks * kWords)];
  for (int64_t i = have; i < n; i += kBlocks * kWords) {
    const int64_t count = std::min(kBlocks * kWords, n - i);
    mersenne::temper(draw(count, buffer), out + i, count);
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
