#include "device/fault.h"

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "device/device.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

using Words = std::array<std::atomic<device::Fault*>, kMaxDevices>;
constinit Words words{};

// The message's holes are filled one after the other.
[[noreturn]] void fail_bounds(const device::Fault& fault) {
  std::string text = fault.message.text;
  for (const int64_t value : {fault.index, fault.message.dim, fault.size})
    if (const size_t hole = text.find("{}"); hole != std::string::npos)
      text.replace(hole, 2, std::to_string(value));
  fail(static_cast<ErrorKind>(fault.message.error), "{}", text);
}

}  // namespace

device::Fault* fault_word(int device) {
  static auto& mutex = *new std::mutex;
  auto& word = words[static_cast<size_t>(device)];
  const std::lock_guard<std::mutex> lock(mutex);
  if (!word) {
    void* memory = nullptr;
    check(use_device(device).host_allocate(&memory, sizeof(device::Fault), kHostPortable));
    word = new (memory) device::Fault{};
  }
  return word;
}

void raise_fault(int device) {
  device::Fault* const word = words[static_cast<size_t>(device)];
  if (!word) return;
  const uint32_t code = std::atomic_ref(word->code).load();
  if (code == 0 || code == device::kClaimed) return;
  const device::Fault found = *word;  // which nobody writes until the code is 0
  std::atomic_ref(word->code).store(0);
  if (found.code == device::kDivisionByZero) fail(ErrorKind::kRuntime, "ZeroDivisionError");
  if (found.code == device::kOutOfBounds) fail_bounds(found);
}

}  // namespace taeda::cuda
