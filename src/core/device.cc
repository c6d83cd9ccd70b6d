#include "taeda/device.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "taeda/error.h"

namespace taeda {
namespace {

// The names of types, in the order of their values: those of DeviceType, then those that PyTorch
// knows and nobody drives here. Programs ask `device == torch.device("mps")` of any machine.
constexpr std::string_view kTypeNames[] = {
    "cpu", "meta", "cuda", "ipu", "xpu",  "mkldnn", "opengl", "opencl", "ideep", "hip",
    "ve",  "fpga", "maia", "xla", "lazy", "vulkan", "mps",    "hpu",    "mtia",  "privateuseone"};

DeviceType type_of(std::string_view name) {
  const auto* const found = std::ranges::find(kTypeNames, name);
  TD_CHECK(found != std::end(kTypeNames),
           "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, "
           "maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of "
           "device string: {}",
           name);
  return static_cast<DeviceType>(found - kTypeNames);
}

}  // namespace

Device Device::parse(std::string_view text) {
  const size_t colon = text.find(':');
  Device device(type_of(text.substr(0, colon)));
  if (colon == std::string_view::npos) return device;
  const std::string_view digits = text.substr(colon + 1);
  int index = -1;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool leading_zero = digits.size() > 1 && digits[0] == '0';
  TD_CHECK(!digits.empty() && result.ec == std::errc() &&
               result.ptr == digits.data() + digits.size() && index >= 0 && index <= 127 &&
               !leading_zero,
           "Invalid device string: '{}'", text);
  device.index = static_cast<int8_t>(index);
  return device;
}

std::string to_text(Device device) {
  std::string text(kTypeNames[static_cast<size_t>(device.type)]);
  if (device.index >= 0) text += ":" + std::to_string(device.index);
  return text;
}

}  // namespace taeda
