#include "taeda/generator.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>
#include <random>

#include "base/fork.h"
#include "core/device_memory.h"
#include "core/mersenne.h"
#include "taeda/storage.h"
#include "taeda/tensor.h"

namespace taeda {
namespace {

// PyTorch's serialized state: its legacy form, whose words took 64 bits, and a cached float that
// the CPU never uses.
struct SavedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[Mt19937::kWords];
  double normal_x, normal_y, normal_rho;
  int32_t has_normal;
  float next_float_normal;
  bool has_float_normal;
};
constexpr int64_t kLegacyBytes = 5048, kStateBytes = 5056;
// has_normal ends the legacy form, which is padded to eight bytes; the float follows the padding.
constexpr size_t kFloatOffset = kLegacyBytes;
static_assert(offsetof(SavedState, has_normal) == kLegacyBytes - 8);

// A tensor of `size` bytes that begins with `n` of `bytes` and goes on with zeros.
Tensor bytes_tensor(const void* bytes, size_t n, int64_t size) {
  Ref<TensorImpl> impl(
      new TensorImpl(Storage::allocate(size, DeviceType::kCPU), DType::kUInt8, DeviceType::kCPU));
  impl->set_contiguous_layout({size});
  std::memset(impl->data(), 0, static_cast<size_t>(size));
  std::memcpy(impl->data(), bytes, n);
  return Tensor(std::move(impl));
}

void check_bytes(const Tensor& state) {
  TD_CHECK_TYPE(state.defined() && state.dtype() == DType::kUInt8 && state.device().is_cpu() &&
                    state.is_contiguous(),
                "RNG state must be a torch.ByteTensor");
}

}  // namespace

uint64_t Generator::seed() {
  std::random_device entropy;
  const uint64_t high = entropy();
  // 53 bits, so that the seed survives as a double.
  manual_seed((high << 32 | entropy()) & ((uint64_t{1} << 53) - 1));
  return seed_;
}

uint64_t Generator::offset() const {
  fail(ErrorKind::kRuntime, "The {} generator does not use an offset", device_);
}
void Generator::set_offset(uint64_t) {
  fail(ErrorKind::kRuntime, "The {} generator does not use an offset", device_);
}

Mt19937::Mt19937(uint64_t seed) : Generator(DeviceType::kCPU, seed) { manual_seed(seed); }

void Mt19937::manual_seed(uint64_t seed) {
  seed_ = seed;
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; i++)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  left_ = 1;
  next_ = 0;
  next_normal_.reset();
}

void Mt19937::twist() {
  alignas(64) uint32_t words[2 * kWords];
  std::copy(state_, state_ + kWords, words);
  mersenne::twist(words, 1);
  std::copy(words + kWords, words + 2 * kWords, state_);
  left_ = kWords;
  next_ = 0;
}

const uint32_t* Mt19937::draw(int64_t n, uint32_t* buffer) {
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

void Mt19937::fill(uint32_t* out, int64_t n) {
  const int64_t have = std::min<int64_t>(n, left_ - 1);
  mersenne::temper(state_ + next_, out, have);
  advance(have);
  constexpr int64_t kBlocks = 4;
  alignas(64) uint32_t buffer[buffer_words(kBlocks * kWords)];
  for (int64_t i = have; i < n; i += kBlocks * kWords) {
    const int64_t count = std::min(kBlocks * kWords, n - i);
    mersenne::temper(draw(count, buffer), out + i, count);
  }
}

int64_t Mt19937::peek(uint32_t* out, int64_t most) {
  if (left_ == 1) {
    twist();
    left_ = kWords + 1;
  }
  const int64_t n = std::min<int64_t>(most, left_ - 1);
  mersenne::temper(state_ + next_, out, n);
  return n;
}

double Mt19937::normal() {
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

Tensor Mt19937::get_state() const {
  SavedState saved{};
  {
    const std::lock_guard<std::mutex> lock(mutex());
    saved.seed = seed_;
    saved.left = left_;
    saved.seeded = 1;
    saved.next = next_;
    std::copy(state_, state_ + kWords, saved.words);
    saved.normal_y = next_normal_.value_or(0.0);
    saved.has_normal = next_normal_.has_value();
  }
  return bytes_tensor(&saved, kFloatOffset - 4, kStateBytes);
}

void Mt19937::set_state(const Tensor& state) {
  check_bytes(state);
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
  const std::lock_guard<std::mutex> lock(mutex());
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

Ref<Generator> Mt19937::clone() const {
  Ref<Mt19937> copy = make_ref<Mt19937>(seed_);
  const std::lock_guard<std::mutex> lock(mutex());
  copy->seed_ = seed_;
  copy->left_ = left_;
  copy->next_ = next_;
  copy->next_normal_ = next_normal_;
  std::copy(state_, state_ + kWords, copy->state_);
  return copy;
}

// --- Philox ---

void Philox::manual_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

Tensor Philox::get_state() const {
  const std::lock_guard<std::mutex> lock(mutex());
  const uint64_t words[] = {seed_, offset_};
  return bytes_tensor(words, sizeof(words), sizeof(words));
}

void Philox::set_state(const Tensor& state) {
  check_bytes(state);
  uint64_t words[2] = {};
  // PyTorch once saved the seed alone.
  TD_CHECK(state.numel() == sizeof(words) || state.numel() == sizeof(words[0]),
           "RNG state is wrong size: expected {} bytes, got {}", sizeof(words), state.numel());
  std::memcpy(words, state.data_ptr(), static_cast<size_t>(state.numel()));
  TD_CHECK(words[1] % 4 == 0, "offset must be a multiple of 4");
  const std::lock_guard<std::mutex> lock(mutex());
  seed_ = words[0];
  offset_ = words[1];
}

Ref<Generator> Philox::clone() const {
  Ref<Philox> copy = make_ref<Philox>(device(), seed_);
  const std::lock_guard<std::mutex> lock(mutex());
  copy->seed_ = seed_;
  copy->offset_ = offset_;
  return copy;
}

void Philox::set_offset(uint64_t offset) {
  TD_CHECK(offset % 4 == 0, "offset must be a multiple of 4");
  offset_ = offset;
}

uint64_t Philox::take(uint64_t draws) {
  const uint64_t first = offset_;
  offset_ += (draws + 3) / 4 * 4;
  return first;
}

std::array<uint32_t, 4> Philox::block(uint64_t counter, uint64_t thread, uint64_t key) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  std::array<uint32_t, 4> c = {low(counter), high(counter), low(thread), high(thread)};
  uint32_t k0 = low(key), k1 = high(key);
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {high(p1) ^ c[1] ^ k0, low(p1), high(p0) ^ c[3] ^ k1, low(p0)};
    k0 += 0x9E3779B9;  // the golden ratio and the square root of 3
    k1 += 0xBB67AE85;
  }
  return c;
}

Mt19937& Philox::twister() {
  if (!twister_) twister_ = make_ref<Mt19937>(seed_);
  const auto words = block(take(4) / 4, 0, seed_);
  const std::lock_guard<std::mutex> lock(twister_->mutex());  // another thread may draw from it
  twister_->manual_seed(words[0]);
  return twister_->twister();
}

// --- defaults ---

namespace {

// Never destroyed, and usable in a forked child.
template <class G>
G& make_default(G* generator) {
  retain(generator);
  protect_over_fork(generator->mutex());
  return *generator;
}

void seed_locked(Generator& generator, uint64_t seed) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.manual_seed(seed);
}

// Those of devices that were asked for; one made later starts from the last seed of all.
struct DeviceGenerators {
  std::mutex mutex;
  std::map<int, Generator*> made;
  uint64_t seed = Generator::kDefaultSeed;

  DeviceGenerators() { protect_over_fork(mutex); }
};
DeviceGenerators& device_generators() {
  static auto& instance = *new DeviceGenerators;
  return instance;
}

}  // namespace

Mt19937& default_generator() {
  static Mt19937& instance = []() -> Mt19937& {
    auto* const generator = new Mt19937;
    generator->seed();
    return make_default(generator);
  }();
  return instance;
}

Generator& default_generator(Device device) {
  if (device.type != DeviceType::kCUDA) return default_generator();
  DeviceGenerators& generators = device_generators();
  const std::lock_guard<std::mutex> lock(generators.mutex);
  Generator*& generator = generators.made[device.index];
  if (!generator) generator = &make_default(new Philox(device, generators.seed));
  return *generator;
}

Generator& generator_or_default(Generator* generator, Device device) {
  if (!generator) return default_generator(device);
  // Meta tensors draw nothing: any generator will do.
  TD_CHECK(!has_memory(device) || generator->device().type == device.type,
           "Expected a '{}' device type for generator but found '{}'", Device(device.type),
           Device(generator->device().type));
  return *generator;
}

void manual_seed(uint64_t seed) {
  seed_locked(default_generator(), seed);
  DeviceGenerators& generators = device_generators();
  const std::lock_guard<std::mutex> lock(generators.mutex);
  generators.seed = seed;
  for (const auto& [index, generator] : generators.made) seed_locked(*generator, seed);
}

}  // namespace taeda
