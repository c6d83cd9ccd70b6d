#include "device/graph_generators.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "device/device.h"
#include "device/memory.h"
#include "taeda/error.h"

namespace taeda::cuda {

constexpr int64_t kBytes = 2 * sizeof(uint64_t);

void GraphGenerators::add(Generator& generator) {
  TD_CHECK(generator.device().type == DeviceType::kCUDA,
           "register_generator_state: expected a generator of a CUDA device, got one of {}",
           generator.device());
  const auto known = [&](const Entry& e) { return e.generator.get() == &generator; };
  if (std::none_of(entries_.begin(), entries_.end(), known))
    entries_.push_back({Ref<Generator>(&generator), nullptr});
}

void GraphGenerators::begin_capture(int device) {
  const Device own(DeviceType::kCUDA, static_cast<int8_t>(device));
  for (const Entry& entry : entries_)
    TD_CHECK(entry.generator->device() == own,
             "CUDAGraph.capture_begin: expected generators of {}, which is captured, got one of {}",
             own, entry.generator->device());
  for (Entry& entry : entries_) {
    entry.words = Storage::allocate(kBytes, own);
    entry.taken = 0;
  }
}

bool GraphGenerators::are_used() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.taken != 0; });
}

std::optional<CapturedGenerator> GraphGenerators::take(const Philox& generator, uint64_t words) {
  for (Entry& entry : entries_) {
    if (entry.generator.get() != &generator) continue;
    const uint64_t offset = entry.taken;
    entry.taken += (words + 3) / 4 * 4;
    return CapturedGenerator{static_cast<const uint64_t*>(entry.words->data()), offset};
  }
  return std::nullopt;
}

void GraphGenerators::replay(Stream stream) {
  const DeviceApi& driver = use_device(stream.device);
  for (Entry& entry : entries_) {
    if (entry.taken == 0) continue;
    Philox& generator = philox(entry);
    uint64_t words[2];
    {
      const std::scoped_lock lock(generator.mutex());
      words[0] = generator.initial_seed();
      words[1] = generator.take(entry.taken);
    }
    void* const to = entry.words->data();
    record_stream(to, stream.device, stream);
    // What is no pinned memory has been read when the call returns.
    check(driver.copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(words), kBytes,
                      stream.handle()));
  }
}

void GraphGenerators::release_memory() {
  for (Entry& entry : entries_) entry.words = nullptr;
}

}  // namespace taeda::cuda
