// CUDA devices of this process: how many, which one a thread works with, what they are.
//
// Questions (device_count, is_available) start the driver but make no context; what needs a device
// makes its primary context on first use. Each thread has a current device, 0 at first. Where there
// is no device, what needs one raises PyTorch's AssertionError. A child that was forked after the
// driver had started cannot use it: RuntimeError.
#pragma once

#include <cstdint>
#include <string>

#include "device/api.h"

namespace taeda::cuda {

inline constexpr int kMaxDevices = 64;

// Devices that can be used; 0 without a driver. Never raises but for a wrong TAEDA_CUDA.
int device_count();
// Whether a context has been made, or initialize() called.
bool is_initialized();
// Whether this process is a child of one that had started the driver.
bool is_forked_child();
// AssertionError without a device, RuntimeError in a forked child. `what` for the message:
// "torch.cuda.init needs one".
void initialize(const std::string& what = {});

// The calling thread's device.
int current_device();
void set_device(int device);
// Does nothing for -1.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : saved_(current_device()) {
    if (device >= 0) set_device(device);
  }
  ~DeviceGuard() { set_device(saved_); }
  DeviceGuard(const DeviceGuard&) = delete;

 private:
  int saved_;
};

// Raises unless the device exists.
void check_device(int device);
// Makes the device's primary context the calling thread's, for the driver's calls; returns them.
const DeviceApi& use_device(int device);
Context primary_context(int device);
// Waits for all work of the device.
void synchronize_device(int device);

struct Properties {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int64_t total_memory = 0;
  int multiprocessors = 0, warp_size = 0;
  int threads_per_multiprocessor = 0, threads_per_block = 0, registers_per_multiprocessor = 0;
  int shared_memory_per_block = 0, shared_memory_per_block_optin = 0;
  int shared_memory_per_multiprocessor = 0;
  int l2_cache_bytes = 0;
  int clock_rate = 0, memory_clock_rate = 0;  // kHz
  int memory_bus_width = 0;                   // bits
  int pci_domain = 0, pci_bus = 0, pci_device = 0;
  bool integrated = false, multi_gpu_board = false;
  Uuid uuid{};
};
const Properties& properties(int device);
struct MemoryInfo {
  int64_t free, total;
};
MemoryInfo memory_info(int device);
bool can_access_peer(int device, int peer);

}  // namespace taeda::cuda
