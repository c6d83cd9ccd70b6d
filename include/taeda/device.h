// Where a tensor lives. `meta` tensors have shape, dtype and no data: operators on them compute
// shapes only. Tensors of one call lie on one device.
//
//   const Tensor x = empty({1 << 20, 1 << 20}, Device::parse("meta"));
//   assert(x.matmul(x).size(0) == 1 << 20);   // costs nothing
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace taeda {

// Types of devices; the order is that of the dispatch tables' columns. CUDA devices are found when
// the driver is there at run time; operators without a kernel of theirs run on the CPU, with
// copies.
enum class DeviceType : uint8_t { kCPU, kMeta, kCUDA };

// Two bytes, compared by value. Tensors always know the index of theirs; -1 stands in arguments for
// the device that is current where the tensor is made.
//
//   assert(Device::parse("cuda:1") == Device(DeviceType::kCUDA, 1));
//   assert(to_text(Device()) == "cpu" && zeros({2}).device().is_cpu());
struct Device {
  DeviceType type = DeviceType::kCPU;
  int8_t index = -1;  // -1: the current device of that type

  constexpr Device() = default;
  constexpr Device(DeviceType type, int8_t index = -1) : type(type), index(index) {}
  // Parses "cpu", "meta", "cuda", "cuda:1"; RuntimeError, naming the text, otherwise. Whether the
  // machine has such a device is found out where memory is asked for.
  static Device parse(std::string_view text);
  constexpr bool is_cpu() const { return type == DeviceType::kCPU; }
  constexpr bool is_meta() const { return type == DeviceType::kMeta; }
  friend constexpr bool operator==(Device a, Device b) = default;
};

// What parse() reads: "cpu", "cuda:1".
std::string to_text(Device device);

}  // namespace taeda
