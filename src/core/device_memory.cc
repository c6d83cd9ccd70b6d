#include "core/device_memory.h"

#include <atomic>
#include <cstring>
#include <iterator>

#include "core/allocator.h"
#include "taeda/error.h"

namespace taeda {
namespace {

constexpr DeviceMemory kHostMemory{
    .resolve = [](Device device) { return device; },
    .allocate = [](int64_t nbytes, Device) { return allocate_cpu(nbytes); },
    .release = [](void* memory, int64_t nbytes, Device) { release_cpu(memory, nbytes); },
    .copy = [](void* to, Device, const void* from, Device, int64_t nbytes,
               bool) { std::memcpy(to, from, static_cast<size_t>(nbytes)); },
};

// `meta` has sizes of memory, but none.
constexpr DeviceMemory kNoMemory{
    .resolve = [](Device) { return Device(DeviceType::kMeta); },
    .allocate = [](int64_t, Device) -> void* { return nullptr; },
    .release = [](void*, int64_t, Device) {},
    .copy = [](void*, Device, const void*, Device, int64_t, bool) {},
};

[[noreturn]] void fail_absent(Device device) {
  fail(ErrorKind::kAssertion, "cannot allocate on {}: no CUDA device was found", device);
}

constexpr DeviceMemory kAbsent{
    .resolve = [](Device device) -> Device { fail_absent(device); },
    .allocate = [](int64_t, Device device) -> void* { fail_absent(device); },
    .release = [](void*, int64_t, Device) {},
    .copy = [](void*, Device to, const void*, Device from, int64_t,
               bool) { fail_absent(to.is_cpu() ? from : to); },
};

// Types that have a name and nothing else.
[[noreturn]] void fail_unknown(Device device) {
  fail(ErrorKind::kRuntime, "taeda has no support for {} devices", Device(device.type));
}

constexpr DeviceMemory kUnknown{
    .resolve = [](Device device) -> Device { fail_unknown(device); },
    .allocate = [](int64_t, Device device) -> void* { fail_unknown(device); },
    .release = [](void*, int64_t, Device) {},
    .copy = [](void*, Device to, const void*, Device, int64_t, bool) { fail_unknown(to); },
};

std::atomic<int64_t> host_read_count{0};

constinit const DeviceMemory* records[] = {&kHostMemory, &kNoMemory, &kAbsent};

}  // namespace

RegisterDeviceMemory::RegisterDeviceMemory(DeviceType type, const DeviceMemory& memory) {
  records[static_cast<int>(type)] = &memory;
}

const DeviceMemory& device_memory(DeviceType type) {
  const auto index = static_cast<size_t>(type);
  return index < std::size(records) ? *records[index] : kUnknown;
}

Device resolved(Device device) {
  return device.is_cpu() ? Device() : device_memory(device.type).resolve(device);
}

void copy_memory(void* to, Device to_device, const void* from, Device from_device, int64_t nbytes,
                 bool non_blocking) {
  if (nbytes == 0) return;
  const Device driver = to_device.is_cpu() ? from_device : to_device;
  device_memory(driver.type).copy(to, to_device, from, from_device, nbytes, non_blocking);
}

void count_host_read(Device device) {
  device_memory(device.type).check_read(device);
  host_read_count.fetch_add(1, std::memory_order_relaxed);
}
int64_t host_reads() { return host_read_count.load(std::memory_order_relaxed); }

}  // namespace taeda
