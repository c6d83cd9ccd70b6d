#include "device/modules.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#include "base/dynamic_library.h"
#include "device/device.h"
#include "device/fault.h"
#include "device/graph.h"
#include "device/kernel_compiler.h"
#include "device/kernel_file.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

struct Kernels {
  std::shared_mutex mutex;
  std::unordered_map<std::string, Function> found;
};

Kernels& kernels(int device) {
  static auto& all = *new std::array<Kernels, kMaxDevices>;
  return all[static_cast<size_t>(device)];
}

// Tells the module's kernels where to note what they find wrong.
void connect_fault_word(const DeviceApi& driver, Module module, int device) {
  Address variable = 0;
  size_t bytes = 0;
  const Status status = driver.module_global(&variable, &bytes, module, "td_fault");
  if (status == kNotFound) return;
  check(status);
  device::Fault* const word = fault_word(device);
  check(driver.copy(variable, reinterpret_cast<Address>(&word), sizeof word, nullptr));
  check(driver.stream_synchronize(nullptr));
}

// taeda_kernels.bin beside libtaeda; none where it was not made (make cuda-kernels).
KernelFile* kernel_file() {
  static KernelFile* const file = []() -> KernelFile* {
    const std::string path = library_folder() + "/taeda_kernels.bin";
    return access(path.c_str(), R_OK) == 0 ? new KernelFile(path) : nullptr;
  }();
  return file;
}

// PTX from the file; or what is compiled of its text, or was in an earlier run. Empty for none.
std::string image_of(int device, const std::string& name) {
  static auto& mutex = *new std::mutex;
  std::optional<KernelText> unit;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!kernel_file()) return {};
    if (std::string ptx = kernel_file()->image(name); !ptx.empty()) return ptx;
    unit = kernel_file()->text(name);
  }
  if (!unit) return {};
  static const auto& cache = *new KernelCache(KernelCache::default_folder());
  const Properties& card = properties(device);
  const std::string architecture = "sm_" + std::to_string(10 * card.major + card.minor);
  return compiled(*unit, architecture, cache, nvrtc());
}

// Also while a graph is captured: nothing of it is work of the capture.
Function load(int device, const std::string& name) {
  const RelaxedCapture relaxed;
  const DeviceApi& driver = use_device(device);
  Module module = nullptr;
  Function function = nullptr;
  const std::string image = simulated() ? " " : image_of(device, name);
  TD_CHECK(!image.empty(), "there is no kernel '{}' for CUDA", name);
  check(driver.module_load(&module, image.c_str()));
  const Status status = driver.module_function(&function, module, name.c_str());
  TD_CHECK(status != kNotFound, "there is no kernel '{}' for CUDA", name);
  check(status);
  connect_fault_word(driver, module, device);
  return function;
}

constinit std::atomic<bool> used = true;

}  // namespace

void use_kernels(bool use) { used = use; }
bool has_kernels() {
  return used.load(std::memory_order_relaxed) && api() && (simulated() || kernel_file());
}

Function find_kernel(int device, const std::string& name) {
  Kernels& known = kernels(device);
  {
    const std::shared_lock<std::shared_mutex> lock(known.mutex);
    if (const auto found = known.found.find(name); found != known.found.end()) return found->second;
  }
  const Function function = load(device, name);  // no lock: a driver compiles several at a time
  const std::unique_lock<std::shared_mutex> lock(known.mutex);
  return known.found.emplace(name, function).first->second;
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  const DeviceApi* const driver = api();
  if (driver && driver->kernel_at)
    for (const char* name; (name = driver->kernel_at(names.size()));) names.emplace_back(name);
  else if (driver && kernel_file())
    names = kernel_file()->names();
  std::sort(names.begin(), names.end());
  return names;
}

void preload(int device, const std::vector<std::string>& names) {
  constexpr size_t kThreads = 16;
  std::atomic<size_t> next = 0;
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (size_t i; (i = next++) < names.size();) find_kernel(device, names[i]);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      error = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(kThreads, names.size()); i++) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace taeda::cuda
