#include "device/device.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "device/fault.h"
#include "device/graph.h"
#include "device/put_off.h"
#include "taeda/error.h"
#include "taeda/warning.h"

namespace taeda::cuda {
namespace {

std::atomic<bool> initialized{false};
std::atomic<bool> forked_child{false};

struct DeviceState {
  DeviceHandle handle = 0;
  std::atomic<Context> context{nullptr};
  std::unique_ptr<Properties> properties;
};

// Made when the first question is asked; never destroyed.
struct Platform {
  int count = 0;
  std::mutex mutex;  // while contexts and properties are made
  std::array<DeviceState, kMaxDevices> devices;

  Platform() {
    if (!api()) return;
    pthread_atfork(nullptr, nullptr, [] { forked_child = true; });
    if (const Status status = start(); status != kSuccess && status != kNoDevice) {
      const char* text = nullptr;
      api()->error_text(status, &text);
      warn(format("CUDA initialization: {} (error {}). Setting the available devices to be zero.",
                  text ? text : "unknown error", status));
      count = 0;
    }
  }

 private:
  Status start() {
    if (const Status status = api()->init(0)) return status;
    int found = 0;
    if (const Status status = api()->device_count(&found)) return status;
    count = std::min(found, kMaxDevices);
    for (int i = 0; i < count; i++)
      if (const Status status = api()->device_get(&state(i).handle, i)) return status;
    return kSuccess;
  }

 public:
  DeviceState& state(int device) { return devices[static_cast<size_t>(device)]; }
};

Platform& platform() {
  static Platform& instance = *new Platform;
  return instance;
}

thread_local int current = 0;
thread_local Context active = nullptr;  // the driver's context of this thread, as far as we set it

Context make_context(int device) {
  DeviceState& state = platform().state(device);
  if (const Context made = state.context.load(std::memory_order_acquire)) return made;
  const std::lock_guard<std::mutex> lock(platform().mutex);
  if (!state.context.load(std::memory_order_relaxed)) {
    Context context = nullptr;
    check(api()->retain_primary(&context, state.handle));
    state.context.store(context, std::memory_order_release);
  }
  initialized = true;
  return state.context;
}

}  // namespace

int device_count() { return platform().count; }
bool is_initialized() { return initialized && !is_forked_child(); }
bool is_forked_child() { return forked_child.load(std::memory_order_relaxed); }

std::string_view how_to_find_devices() {
  const char* const choice = std::getenv("TAEDA_CUDA");
  if (choice && std::string_view(choice) == "driver")
    return "TAEDA_CUDA=driver found no driver of NVIDIA's (libcuda.so.1), or the driver no device; "
           "nvidia-smi lists what there is";
  return "set TAEDA_CUDA=driver before the program starts; taeda asks NVIDIA's driver for devices "
         "only where that is set";
}

void initialize(const std::string& what) {
  TD_CHECK_AS(ErrorKind::kAssertion, device_count() > 0,
              "Torch not compiled with CUDA enabled: no CUDA device was found{}{}\nFix: {}",
              what.empty() ? "" : "; ", what, how_to_find_devices());
  TD_CHECK(!is_forked_child(),
           "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you "
           "must use the 'spawn' start method");
  initialized = true;
}

int current_device() { return current; }

void set_device(int device) {
  if (device == current) return;
  check_device(device);
  current = device;
}

void check_device(int device) {
  initialize();
  if (device >= 0 && device < device_count()) return;
  throw AcceleratorError(
      format("invalid device ordinal\nGPU device may be out of range, do you have enough GPUs? "
             "There are {}, and {} was asked for",
             device_count(), device));
}

const DeviceApi& use_device(int device) {
  launch_what_is_put_off();
  check_device(device);
  const Context context = make_context(device);
  if (active != context) {
    check(api()->set_context(context));
    active = context;
  }
  return *api();
}

Context primary_context(int device) {
  check_device(device);
  return make_context(device);
}

void synchronize_device(int device) {
  forbid_while_capturing(Stream::current(device), "torch.cuda.synchronize");
  check(use_device(device).synchronize_context());
  raise_fault(device);
}

namespace {

Properties ask(DeviceHandle device) {
  const DeviceApi& driver = *api();
  const auto get = [&](Attribute which) {
    int value = 0;
    check(driver.device_attribute(&value, which, device));
    return value;
  };
  Properties p;
  char name[256] = {};
  check(driver.device_name(name, sizeof(name), device));
  p.name = name;
  size_t bytes = 0;
  check(driver.device_memory(&bytes, device));
  p.total_memory = static_cast<int64_t>(bytes);
  check(driver.device_uuid(&p.uuid, device));
  p.major = get(Attribute::kComputeCapabilityMajor);
  p.minor = get(Attribute::kComputeCapabilityMinor);
  p.multiprocessors = get(Attribute::kMultiprocessorCount);
  p.warp_size = get(Attribute::kWarpSize);
  p.threads_per_multiprocessor = get(Attribute::kMaxThreadsPerMultiprocessor);
  p.threads_per_block = get(Attribute::kMaxThreadsPerBlock);
  p.registers_per_multiprocessor = get(Attribute::kMaxRegistersPerMultiprocessor);
  p.shared_memory_per_block = get(Attribute::kMaxSharedMemoryPerBlock);
  p.shared_memory_per_block_optin = get(Attribute::kMaxSharedMemoryPerBlockOptin);
  p.shared_memory_per_multiprocessor = get(Attribute::kMaxSharedMemoryPerMultiprocessor);
  p.l2_cache_bytes = get(Attribute::kL2CacheBytes);
  p.clock_rate = get(Attribute::kClockRate);
  p.memory_clock_rate = get(Attribute::kMemoryClockRate);
  p.memory_bus_width = get(Attribute::kMemoryBusWidth);
  p.pci_domain = get(Attribute::kPciDomainId);
  p.pci_bus = get(Attribute::kPciBusId);
  p.pci_device = get(Attribute::kPciDeviceId);
  p.integrated = get(Attribute::kIntegrated) != 0;
  p.multi_gpu_board = get(Attribute::kIsMultiGpuBoard) != 0;
  return p;
}

}  // namespace

const Properties& properties(int device) {
  check_device(device);
  const std::lock_guard<std::mutex> lock(platform().mutex);
  DeviceState& state = platform().state(device);
  if (!state.properties) state.properties = std::make_unique<Properties>(ask(state.handle));
  return *state.properties;
}

MemoryInfo memory_info(int device) {
  size_t free = 0, total = 0;
  check(use_device(device).memory_info(&free, &total));
  return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

bool can_access_peer(int device, int peer) {
  check_device(device);
  check_device(peer);
  int can = 0;
  check(
      api()->can_access_peer(&can, platform().state(device).handle, platform().state(peer).handle));
  return can != 0;
}

}  // namespace taeda::cuda
