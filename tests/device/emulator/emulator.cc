#include "device/emulator/emulator.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <random>
#include <unordered_map>
#include <vector>

#include "device/emulator/block.h"
#include "device/sim/emulator_api.h"

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
thread_local taeda::device::Fault* td_fault = nullptr;

namespace taeda::emulator {
namespace {

std::unordered_map<std::string_view, const Kernel*>& kernels() {
  static std::unordered_map<std::string_view, const Kernel*> all;
  return all;
}

void check_limits(dim3 grid, dim3 block, size_t shared_bytes) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64)
    throw LaunchError("a block of " + std::to_string(threads) + " threads");
  if (grid.x == 0 || grid.x > 0x7fffffff || grid.y == 0 || grid.y > 65535 || grid.z == 0 ||
      grid.z > 65535)
    throw LaunchError("a grid beyond the hardware's limits");
  if (shared_bytes > 227 << 10) throw LaunchError("more shared memory than a block may have");
}

}  // namespace

Kernel::Kernel(const char* name, size_t argument_bytes, Run run)
    : name(name), argument_bytes(argument_bytes), run(run) {
  kernels().emplace(name, this);
}
const Kernel* Kernel::find(std::string_view name) {
  const auto found = kernels().find(name);
  return found == kernels().end() ? nullptr : found->second;
}

void launch(dim3 grid, dim3 block, size_t shared_bytes, uint32_t seed,
            const std::function<void()>& thread) {
  check_limits(grid, block, shared_bytes);
  std::mt19937 random(seed);
  std::vector<unsigned> order(size_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  gridDim = grid;
  blockDim = block;
  sanitizer::Launch all;
  for (const unsigned i : order) {
    blockIdx = {i % grid.x, i / grid.x % grid.y, i / (grid.x * grid.y)};
    Block(thread, block, shared_bytes, random, all).run();
  }
}

namespace {

const Kernel& kernel(const void* handle) { return *static_cast<const Kernel*>(handle); }

// While a kernel runs, the device memory that its launch did not name is out of bounds.
class Watch {
 public:
  explicit Watch(const sim::EmulatedLaunch& launch) : launch_(launch) {
    for (const sim::MemoryRange& r : launch.memory) poison(r);
    for (const sim::MemoryRange& r : launch.allowed) unpoison(r);
  }
  ~Watch() {
    for (const sim::MemoryRange& r : launch_.memory) unpoison(r);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
#if defined(__SANITIZE_ADDRESS__)
  static void poison(const sim::MemoryRange& r) { __asan_poison_memory_region(r.begin, r.bytes); }
  static void unpoison(const sim::MemoryRange& r) {
    __asan_unpoison_memory_region(r.begin, r.bytes);
  }
#else
  static void poison(const sim::MemoryRange&) {}
  static void unpoison(const sim::MemoryRange&) {}
#endif
  const sim::EmulatedLaunch& launch_;
};

const char* run(const void* handle, const sim::EmulatedLaunch& what, const void* argument) {
  static thread_local std::string text;
  td_fault = *static_cast<device::Fault* const*>(what.fault);
  const Watch watch(what);
  const auto size = [](const unsigned(&n)[3]) { return dim3{n[0], n[1], n[2]}; };
  try {
    launch(size(what.grid), size(what.block), what.shared_bytes, what.seed,
           [&] { kernel(handle).run(argument); });
    return nullptr;
  } catch (const std::exception& error) {
    text = std::string(kernel(handle).name) + ": " + error.what();
    return text.c_str();
  }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kWatches = true;
#else
constexpr bool kWatches = false;
#endif

constexpr sim::EmulatorApi kApi{
    .find = [](const char* name) -> const void* { return Kernel::find(name); },
    .kernel_at = [](size_t i) -> const void* {
      auto& all = kernels();
      return i < all.size() ? std::next(all.begin(), static_cast<std::ptrdiff_t>(i))->second
                            : nullptr;
    },
    .name = [](const void* handle) { return kernel(handle).name; },
    .argument_bytes = [](const void* handle) { return kernel(handle).argument_bytes; },
    .watches = kWatches,
    .run = run,
};

}  // namespace
}  // namespace taeda::emulator

extern "C" const taeda::sim::EmulatorApi* taeda_emulator_api() { return &taeda::emulator::kApi; }
