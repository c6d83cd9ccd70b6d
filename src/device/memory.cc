#include "device/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/caching_allocator.h"
#include "core/device_memory.h"
#include "device/device.h"
#include "device/event_pool.h"
#include "device/graph.h"
#include "device/pinned.h"
#include "device/put_off.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

std::atomic<MemoryContextHook> context_hook{nullptr};

// What CachingAllocator asks of a device.
struct CudaDevice {
  int index = 0;
  using Event = PooledEvent;

  // What was put off may allocate when it is launched, so it is not while the allocator is locked.
  bool has_put_off() const { return launch_put_off; }
  void launch_put_off_work() const { launch_what_is_put_off(); }
  void locked(bool now) const { launch_is_locked = now; }

  void* allocate(int64_t bytes) {
    const RelaxedCapture relaxed;
    Address address = 0;
    const Status status = use_device(index).allocate(&address, static_cast<size_t>(bytes));
    if (status == kOutOfMemory) return nullptr;
    check(status);
    return reinterpret_cast<void*>(address);
  }
  void release(void* memory, int64_t) {
    const RelaxedCapture relaxed;
    check(use_device(index).release(reinterpret_cast<Address>(memory)));
  }
  Event record_event(int64_t stream) { return PooledEvent(stream_of(stream)); }
  bool query_event(Event& event) { return event.query(); }
  void wait_event(Event& event) { event.synchronize(); }
  std::string name() const { return "CUDA"; }
  // What an OutOfMemoryError says of the device.
  std::string out_of_memory_text() const {
    const MemoryInfo info = memory_info(index);
    return format(" GPU {} has a total capacity of {} of which {} is free.", index,
                  bytes_text(info.total), bytes_text(info.free));
  }
  int64_t free_bytes() const { return memory_info(index).free; }
  int64_t total_bytes() const { return properties(index).total_memory; }
  void order(int64_t before, int64_t after) {
    Stream{index, after}.wait(PooledEvent(Stream{index, before}).event());
  }
  MemoryContextRef context() const {
    const MemoryContextHook hook = context_hook.load(std::memory_order_relaxed);
    return hook ? hook() : nullptr;
  }

  // --- expandable segments ---

  MemoryProperties memory_properties() const {
    MemoryProperties properties;
    properties.location.device = index;
    return properties;
  }
  // More than the device has: addresses are taken by blocks that lie between free ones, too.
  int64_t reservation_bytes() const {
    size_t granule = 0;
    const MemoryProperties wanted = memory_properties();
    const Status status = use_device(index).granularity(&granule, &wanted, kGranularityRecommended);
    if (status != kSuccess || granule == 0 || (2 << 20) % granule != 0) return 0;
    return total_bytes() / 8 * 9;
  }
  char* reserve(int64_t bytes) {
    Address address = 0;
    const Status status = use_device(index).reserve(&address, static_cast<size_t>(bytes), 0, 0, 0);
    return status == kSuccess ? reinterpret_cast<char*>(address) : nullptr;
  }
  void unreserve(char* at, int64_t bytes) {
    check(use_device(index).unreserve(reinterpret_cast<Address>(at), static_cast<size_t>(bytes)));
  }
  uint64_t map(char* at, int64_t bytes) {
    const RelaxedCapture relaxed;
    const DeviceApi& driver = use_device(index);
    const MemoryProperties wanted = memory_properties();
    const auto size = static_cast<size_t>(bytes);
    MemoryHandle handle = 0;
    const Status status = driver.memory_create(&handle, size, &wanted, 0);
    if (status == kOutOfMemory) return 0;
    check(status);
    const auto address = reinterpret_cast<Address>(at);
    MemoryAccess access;
    access.location.device = index;
    if (const Status mapped = driver.map(address, size, 0, handle, 0)) {
      driver.memory_destroy(handle);
      fail_status(mapped);
    }
    check(driver.set_access(address, size, &access, 1));
    return handle;
  }
  void unmap(char* at, int64_t bytes, uint64_t handle) {
    const DeviceApi& driver = use_device(index);
    check(driver.unmap(reinterpret_cast<Address>(at), static_cast<size_t>(bytes)));
    check(driver.memory_destroy(handle));
  }
  void synchronize() { check(use_device(index).synchronize_context()); }

  // A stream as a number: that of another device has it above the 56 bits of an address.
  int64_t number_of(Stream stream) const {
    return stream.device == index ? stream.id : stream.id | int64_t{stream.device + 1} << 56;
  }
  Stream stream_of(int64_t number) const {
    const int other = static_cast<int>(number >> 56);
    return other == 0 ? Stream{index, number}
                      : Stream{other - 1, number & ((int64_t{1} << 56) - 1)};
  }
};
using Allocator = CachingAllocator<CudaDevice>;

AllocatorOptions options_of_environment() {
  for (const char* text : {std::getenv("TAEDA_CUDA_ALLOC_CONF"), std::getenv("PYTORCH_ALLOC_CONF"),
                           std::getenv("PYTORCH_CUDA_ALLOC_CONF")})
    if (text) return parse_allocator_options(text);
  return {};
}

// One a device, made when it is first used. Never destroyed: storages may be released while the
// process exits.
struct Allocators {
  std::array<std::atomic<Allocator*>, kMaxDevices> made{};
  std::mutex mutex;  // of what follows, and while one is made
  std::optional<AllocatorOptions> options{};

  const AllocatorOptions& get_options() {
    if (!options) options = options_of_environment();
    return *options;
  }
  static void apply(Allocator& allocator, const AllocatorOptions& options) {
    allocator.set_options(options);
    if (options.memory_fraction >= 1) return;
    const auto total = static_cast<double>(allocator.device().total_bytes());
    allocator.set_limit(
        std::max<int64_t>(1, static_cast<int64_t>(total * options.memory_fraction)));
  }
};
Allocators& allocators() {
  static auto& instance = *new Allocators;
  return instance;
}

Allocator& allocator(int device) {
  check_device(device);
  Allocators& all = allocators();
  auto& made = all.made[static_cast<size_t>(device)];
  if (Allocator* found = made.load(std::memory_order_acquire)) [[likely]]
    return *found;
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (!made) {
    auto fresh = std::make_unique<Allocator>(CudaDevice{device});
    Allocators::apply(*fresh, all.get_options());
    made.store(fresh.release(), std::memory_order_release);
  }
  return *made;
}

Address address(const void* memory) { return reinterpret_cast<Address>(memory); }

void copy_between(void* to, int to_device, const void* from, int from_device, int64_t nbytes) {
  const Stream source = Stream::current(from_device), target = Stream::current(to_device);
  // What the target's stream still does with the memory comes first.
  source.wait(PooledEvent(target).event());
  check(use_device(from_device)
            .copy_peer(address(to), primary_context(to_device), address(from),
                       primary_context(from_device), static_cast<size_t>(nbytes), source.handle()));
  target.wait(PooledEvent(source).event());
}

}  // namespace

void* allocate(int64_t nbytes, int device) {
  const Stream stream = Stream::current(device);
  return allocator(device).allocate(nbytes, stream.id, current_pool(stream));
}

void release(void* memory, int device) noexcept {
  if (!memory || is_forked_child()) return;
  try {
    allocator(device).release(memory);
  } catch (const Error&) {
    // The device is lost: its memory is, too. Whoever uses it next is told.
  }
}

void record_stream(void* memory, int device, Stream stream) {
  Allocator& of_device = allocator(device);
  of_device.record_stream(memory, of_device.device().number_of(stream));
}

void empty_cache(int device) { allocator(device).empty_cache(); }
MemoryStats memory_stats(int device) { return allocator(device).stats(); }
void reset_peak_stats(int device) { allocator(device).reset_peak_stats(); }
void reset_accumulated_stats(int device) { allocator(device).reset_accumulated_stats(); }
std::vector<SegmentInfo> memory_snapshot(int device) { return allocator(device).snapshot(); }
void set_memory_limit(int device, int64_t bytes) { allocator(device).set_limit(bytes); }
int64_t memory_limit(int device) { return allocator(device).limit(); }

MemoryContextRef memory_context(int device, const void* address) {
  return allocator(device).block_context(address);
}

AllocatorOptions allocator_options() {
  const std::lock_guard<std::mutex> lock(allocators().mutex);
  return allocators().get_options();
}

void set_allocator_options(const std::string& text) {
  AllocatorOptions options = parse_allocator_options(text);
  Allocators& all = allocators();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (auto& made : all.made)
    if (Allocator* found = made) Allocators::apply(*found, options);
  all.options = std::move(options);
}

void retain_pool(int device, const PoolName& name, bool use_on_oom, bool no_split) {
  allocator(device).retain_pool(name, use_on_oom, no_split);
}
void release_pool(int device, const PoolName& name) { allocator(device).release_pool(name); }
int pool_uses(int device, const PoolName& name) { return allocator(device).pool_uses(name); }
std::map<PoolName, MemoryStats::Levels> private_reserved_bytes(int device) {
  return allocator(device).private_reserved_bytes();
}
void begin_capture(int device) { allocator(device).begin_capture(); }
void end_capture(int device) { allocator(device).end_capture(); }

void set_memory_context_hook(MemoryContextHook hook) { context_hook = hook; }
void record_memory_history(int device, bool on, size_t max_events, bool clear) {
  allocator(device).record_history(on, max_events, clear);
}
std::vector<MemoryEvent> memory_history(int device) { return allocator(device).history(); }

namespace {

// Copies that a graph can repeat: host memory must be there, and stay, whenever it runs.
void check_copy_in_capture(const void* host, Stream stream, bool non_blocking) {
  if (!is_capturing(stream.device)) return;
  TD_CHECK(is_pinned(host),
           "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU "
           "tensor is pinned. Please use tensor.pin_memory() or allocate the tensor with "
           "pin_memory=True.");
  if (!non_blocking) forbid_while_capturing(stream, "a copy that is not non_blocking");
}

}  // namespace

void copy(void* to, int to_device, const void* from, int from_device, int64_t nbytes,
          bool non_blocking) {
  if (nbytes == 0) return;
  if (to_device >= 0 && from_device >= 0 && to_device != from_device)
    return copy_between(to, to_device, from, from_device, nbytes);
  const int device = to_device >= 0 ? to_device : from_device;
  const Stream stream = Stream::current(device);
  if (to_device < 0 || from_device < 0)
    check_copy_in_capture(to_device < 0 ? to : from, stream, non_blocking);
  check(use_device(device).copy(address(to), address(from), static_cast<size_t>(nbytes),
                                stream.handle()));
  if (to_device >= 0 && from_device >= 0) return;
  if (!non_blocking) return stream.synchronize();
  record_pinned_use(to_device < 0 ? to : from, stream);
}

// --- storages: core's record for device "cuda" ---

namespace {

Device resolve(Device device) {
  initialize(format("cannot allocate on {}", device));
  if (device.index < 0) device.index = static_cast<int8_t>(current_device());
  check_device(device.index);
  return device;
}

int index_of(Device device) { return device.type == DeviceType::kCUDA ? device.index : -1; }

constexpr DeviceMemory kMemory{
    .resolve = resolve,
    .allocate = [](int64_t nbytes, Device device) { return allocate(nbytes, device.index); },
    .release = [](void* memory, int64_t, Device device) { release(memory, device.index); },
    .copy =
        [](void* to, Device to_device, const void* from, Device from_device, int64_t nbytes,
           bool non_blocking) {
          copy(to, index_of(to_device), from, index_of(from_device), nbytes, non_blocking);
        },
    .check_read =
        [](Device device) {
          forbid_while_capturing(Stream::current(device.index),
                                 "a look at a tensor's value, as by bool(x) or x.item(),");
        },
};
const RegisterDeviceMemory registered(DeviceType::kCUDA, kMemory);

}  // namespace

}  // namespace taeda::cuda
