// What storages ask of a device's memory: one constant record for each type of device.
//
// The CPU's is here; whoever drives another device (src/device) puts its record in before main(),
// so that core needs nothing of it. Without one, allocation on that device raises PyTorch's
// AssertionError. All functions may be called from any thread.
#pragma once

#include <cstdint>

#include "taeda/device.h"

namespace taeda {

struct DeviceMemory {
  // The device with an index where there is one to choose ("cuda" is the thread's current one);
  // AssertionError or RuntimeError where it does not exist.
  Device (*resolve)(Device device);
  // Uninitialised memory, ordered on the thread's current stream of the device; OutOfMemoryError
  // when there is none. Zero bytes give null.
  void* (*allocate)(int64_t nbytes, Device device);
  // `nbytes` as it was asked for. Runs in destructors: must not raise.
  void (*release)(void* memory, int64_t nbytes, Device device);
  // Copies on the current stream of the device. One side is memory of this device; the other of any
  // that this one can reach: the CPU and its own kind. A copy from or to the CPU has ended when the
  // call returns, unless it is non-blocking and the host's memory is pinned.
  void (*copy)(void* to, Device to_device, const void* from, Device from_device, int64_t nbytes,
               bool non_blocking);
  // Raises where the host cannot wait for the device's elements now, as its work is being captured.
  void (*check_read)(Device device) = [](Device) {};
};

// Puts a device's record in; `memory` lives for ever.
struct RegisterDeviceMemory {
  RegisterDeviceMemory(DeviceType type, const DeviceMemory& memory);
};

// The record of a type; for types that nobody drives one whose functions raise.
const DeviceMemory& device_memory(DeviceType type);

// Whether tensors of a device have elements: those of meta have sizes only. Everything that reads
// or writes elements asks this and not for a device's name.
constexpr bool has_memory(Device device) { return device.type != DeviceType::kMeta; }

// The device with its index, as tensors have it: "cpu:0" is the CPU.
Device resolved(Device device);

// Copies bytes between any two devices; the record of the side that is not the CPU does it.
void copy_memory(void* to, Device to_device, const void* from, Device from_device, int64_t nbytes,
                 bool non_blocking = false);

// Reads of a device's elements by the host in this process (item(), printing, contracts that look
// at values): each waits for the device, or raises where nobody can.
void count_host_read(Device device);
int64_t host_reads();

}  // namespace taeda
