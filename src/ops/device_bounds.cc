#include "ops/device_bounds.h"

#include <mutex>
#include <set>
#include <string>

#include "device/has_kernels.h"
#include "kernels/cuda/bounds.h"
#include "ops/batching/level.h"
#include "ops/host.h"

namespace taeda::on_device {
namespace {

// The text for as long as the process lives: kernels note where it is. There are few.
const char* lasting(std::string_view text) {
  static auto& mutex = *new std::mutex;
  static auto& texts = *new std::set<std::string, std::less<>>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = texts.find(text);
  return (found == texts.end() ? texts.emplace(text).first : found)->c_str();
}

}  // namespace

bool checks_indices(const Tensor& index, int64_t size, const Outside& outside) {
  if (index.device().type != DeviceType::kCUDA || !cuda::has_kernels()) return false;
  if (is_storage_type(index.dtype()) || !has_values(index)) return false;
  Tensor all = batching::all_samples(index);
  if (all.impl()->keys.has(Key::kFunctionalize)) all = functional_value(all);
  const std::string_view below = outside.below.empty() ? outside.message : outside.below;
  cuda::check_bounds(view_of(all), {size, lasting(outside.message), lasting(below), outside.error,
                                    outside.dim, outside.except});
  return true;
}

}  // namespace taeda::on_device

namespace taeda::rules {

bool in_range_by_device(const Tensor& index, int64_t size, std::string_view found,
                        std::string_view below) {
  return on_device::checks_indices(index, size, {found, below, ErrorKind::kRuntime});
}

bool targets_by_device(std::string_view op, const Tensor& target, int64_t classes,
                       int64_t ignore_index) {
  if (target.device().type != DeviceType::kCUDA) return true;
  const std::string found = std::string(op) +
                            "(): Target {} is out of bounds. A target is the index of one of the "
                            "input's {} classes.";
  on_device::Outside outside{found};
  outside.except = ignore_index;
  on_device::checks_indices(target, classes, outside);
  return true;
}

bool indices_by_device(std::string_view op, const Tensor& index, int64_t dim, int64_t size) {
  if (index.device().type != DeviceType::kCUDA) return true;
  const std::string found =
      std::string(op) + "(): index {} is out of bounds for dimension {} with size {}";
  on_device::Outside outside{found};
  outside.dim = dim;
  on_device::checks_indices(index, size, outside);
  return true;
}

}  // namespace taeda::rules
