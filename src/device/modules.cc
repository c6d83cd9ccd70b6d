#include "device/modules.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#include "base/dynamic_library.h"
#include "device/cubin_file.h"
#include "device/device.h"
#include "device/fault.h"
#include "device/graph.h"
#include "device/kernel_compiler.h"
#include "device/kernel_file.h"
#include "device/packed_part.h"
#include "taeda/error.h"
#include "taeda/warning.h"

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
std::string kernel_path() { return library_folder() + "/taeda_kernels.bin"; }
KernelFile* kernel_file() {
  static KernelFile* const file = []() -> KernelFile* {
    const std::string path = kernel_path();
    return access(path.c_str(), R_OK) == 0 ? new KernelFile(path) : nullptr;
  }();
  return file;
}

// A kernel's PTX, which the driver compiles, or the text of its unit; neither: no such kernel.
struct Source {
  std::string ptx;
  std::optional<KernelText> unit;
};
Source source_of(const std::string& name) {
  static auto& mutex = *new std::mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!kernel_file()) return {};
  Source found{kernel_file()->image(name), std::nullopt};
  if (found.ptx.empty()) found.unit = kernel_file()->text(name);
  return found;
}

int card_of(int device) { return 10 * properties(device).major + properties(device).minor; }

// Modules of the wheel taeda-cuda, for one device: each has several kernels, and is loaded once.
class Cubins {
 public:
  explicit Cubins(int device)
      : file_(CubinFile::find(CubinFile::default_folder(), card_of(device))) {
    if (file_ && !has_xz()) {
      warn(format("{} is not used, because there is no liblzma.so.5\nFix: install xz",
                  file_->path()));
      file_ = nullptr;
    }
    if (!file_ || !kernel_file() || file_->stamp() == CubinFile::stamp_of(kernel_path())) return;
    warn(
        format("{} has the kernels of another version of taeda, and is not used\n"
               "Fix: install taeda-cuda of this version",
               file_->path()));
    file_ = nullptr;
  }

  bool any() const { return file_ != nullptr; }
  // Null where no module has the kernel, or the driver refuses it: it is older than the wheel.
  Module find(const DeviceApi& driver, const std::string& kernel) {
    const size_t unit = file_ ? file_->unit(kernel) : CubinFile::kNone;
    if (unit == CubinFile::kNone) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [at, fresh] = modules_.emplace(unit, nullptr);
    if (!fresh) return at->second;
    const Status status = driver.module_load(&at->second, file_->image(unit).c_str());
    if (status == kNoBinaryForDevice || status == kInvalidImage) return at->second = nullptr;
    check(status);
    return at->second;
  }

 private:
  std::unique_ptr<CubinFile> file_;
  std::mutex mutex_;
  std::unordered_map<size_t, Module> modules_;
};
Cubins& cubins(int device) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::array<Cubins*, kMaxDevices>{};
  const std::lock_guard<std::mutex> lock(mutex);
  Cubins*& found = all[static_cast<size_t>(device)];
  if (!found) found = new Cubins(device);
  return *found;
}

// The simulated driver's kernels are the emulator's, whatever the image.
Module load_module(const DeviceApi& driver, int device, const std::string& name) {
  if (const Module found = cubins(device).find(driver, name)) return found;
  const Source source = simulated() ? Source{" ", std::nullopt} : source_of(name);
  TD_CHECK(!source.ptx.empty() || source.unit, "there is no kernel '{}' for CUDA", name);
  static const auto& cache = *new KernelCache(KernelCache::default_folder());
  if (source.unit) return load_unit(driver, *source.unit, card_of(device), cache, nvrtc());
  Module module = nullptr;
  check(driver.module_load(&module, source.ptx.c_str()));
  return module;
}

// Also while a graph is captured: nothing of it is work of the capture.
Function load(int device, const std::string& name) {
  const RelaxedCapture relaxed;
  const DeviceApi& driver = use_device(device);
  const Module module = load_module(driver, device, name);
  Function function = nullptr;
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

bool has_cubins(int device) { return cubins(device).any(); }

std::vector<std::string> loaded_kernels(int device) {
  Kernels& known = kernels(device);
  const std::shared_lock<std::shared_mutex> lock(known.mutex);
  std::vector<std::string> names;
  for (const auto& [name, function] : known.found) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
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
