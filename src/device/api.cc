#include "device/api.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/dynamic_library.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

struct Choice {
  const DeviceApi* api = nullptr;
  bool simulated = false;
};

// "sim" is one device, "sim:4" four.
int simulated_devices(std::string_view text) {
  if (text == "sim") return 1;
  constexpr std::string_view kPrefix = "sim:";
  int count = 0;
  if (text.starts_with(kPrefix)) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + kPrefix.size(), end, count);
    if (error == std::errc() && stop == end && count >= 1 && count <= 16) return count;
  }
  fail(ErrorKind::kValue,
       "TAEDA_CUDA: expected 'none', 'driver', 'sim' or 'sim:N' with N from 1 to 16 simulated "
       "devices, got '{}'",
       text);
}

Choice choose() {
  const char* const variable = std::getenv("TAEDA_CUDA");
  const std::string_view text = variable ? variable : "";
  if (text.empty() || text == "none") return {};
  if (text == "driver") return {open_driver(), false};
  return {open_simulator(simulated_devices(text)), true};
}

const Choice& choice() {
  static const Choice made = choose();
  return made;
}

}  // namespace

const DeviceApi* api() { return choice().api; }
bool simulated() { return choice().simulated; }

const DeviceApi* open_simulator(int devices) {
  const DynamicLibrary library = DynamicLibrary::open("libtaeda_sim.so");
  TD_CHECK(
      library.is_open(),
      "TAEDA_CUDA=sim: the simulated driver, libtaeda_sim.so, is no part of wheels: build taeda "
      "from its repository (`make build`) and put build/python on PYTHONPATH ({})",
      library.error());
  const DeviceApi* (*make)(int) = nullptr;
  library.load(make, "taeda_sim_api");
  return make(devices);
}

void fail_status(Status status) {
  const char* text = nullptr;
  if (!api() || api()->error_text(status, &text) != kSuccess || !text) text = "unknown error";
  if (status == kOutOfMemory) fail(ErrorKind::kOutOfMemory, "CUDA error: {}", text);
  throw AcceleratorError(
      std::string(text) +
      "\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
      "stacktrace below might be incorrect.");
}

void check(Status status) {
  if (status != kSuccess) [[unlikely]]
    fail_status(status);
}

}  // namespace taeda::cuda
