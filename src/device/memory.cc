#include "device/memory.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "core/caching_allocator.h"
#include "core/device_memory.h"
#include "device/device.h"
#include "device/event_pool.h"
#include "device/pinned.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

// What CachingAllocator asks of a device.
struct CudaDevice {
  int index = 0;
  using Event = PooledEvent;

  void* allocate(int64_t bytes) {
    Address address = 0;
    const Status status = use_device(index).allocate(&address, static_cast<size_t>(bytes));
    if (status == kOutOfMemory) return nullptr;
    check(status);
    return reinterpret_cast<void*>(address);
  }
  void release(void* memory, int64_t) {
    check(use_device(index).release(reinterpret_cast<Address>(memory)));
  }
  Event record_event(int64_t stream) { return PooledEvent(Stream{index, stream}); }
  bool query_event(Event& event) { return event.query(); }
  void wait_event(Event& event) { event.synchronize(); }
  std::string name() const { return "CUDA"; }
  // What an OutOfMemoryError says of the device.
  std::string out_of_memory_text() const {
    const MemoryInfo info = memory_info(index);
    return format(" GPU {} has a total capacity of {} of which {} is free.", index,
                  bytes_text(info.total), bytes_text(info.free));
  }
};
using Allocator = CachingAllocator<CudaDevice>;

Allocator& allocator(int device) {
  static auto& allocators = *new std::array<std::atomic<Allocator*>, kMaxDevices>{};
  static auto& mutex = *new std::mutex;
  check_device(device);
  auto& made = allocators[static_cast<size_t>(device)];
  if (Allocator* found = made.load(std::memory_order_acquire)) return *found;
  const std::lock_guard<std::mutex> lock(mutex);
  // Never destroyed: storages may be released while the process exits.
  if (!made) made.store(new Allocator(CudaDevice{device}), std::memory_order_release);
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
  return allocator(device).allocate(nbytes, Stream::current(device).id);
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
  allocator(device).record_stream(memory, stream.id);
}

void empty_cache(int device) { allocator(device).empty_cache(); }
MemoryStats memory_stats(int device) { return allocator(device).stats(); }
void reset_peak_stats(int device) { allocator(device).reset_peak_stats(); }
void reset_accumulated_stats(int device) { allocator(device).reset_accumulated_stats(); }
std::vector<SegmentInfo> memory_snapshot(int device) { return allocator(device).snapshot(); }
void set_memory_limit(int device, int64_t bytes) { allocator(device).set_limit(bytes); }
int64_t memory_limit(int device) { return allocator(device).limit(); }

void copy(void* to, int to_device, const void* from, int from_device, int64_t nbytes,
          bool non_blocking) {
  if (nbytes == 0) return;
  if (to_device >= 0 && from_device >= 0 && to_device != from_device)
    return copy_between(to, to_device, from, from_device, nbytes);
  const int device = to_device >= 0 ? to_device : from_device;
  const Stream stream = Stream::current(device);
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
};
const RegisterDeviceMemory registered(DeviceType::kCUDA, kMemory);

}  // namespace

}  // namespace taeda::cuda
