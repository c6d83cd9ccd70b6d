#include "taeda/device.h"

#include <charconv>

#include "taeda/error.h"

namespace taeda {
namespace {

std::string_view type_name(DeviceType type) {
  switch (type) {
    case DeviceType::kCPU:
      return "cpu";
    case DeviceType::kMeta:
      return "meta";
    case DeviceType::kCUDA:
      return "cuda";
  }
  return "unknown";
}

}  // namespace

Device Device::parse(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Device device;
  if (name == "cpu")
    device.type = DeviceType::kCPU;
  else if (name == "meta")
    device.type = DeviceType::kMeta;
  else if (name == "cuda")
    device.type = DeviceType::kCUDA;
  else
    fail(ErrorKind::kRuntime,
         "Expected one of cpu, cuda, meta device type at start of device string: {}", name);
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
  std::string text(type_name(device.type));
  if (device.index >= 0) text += ":" + std::to_string(device.index);
  return text;
}

}  // namespace taeda
