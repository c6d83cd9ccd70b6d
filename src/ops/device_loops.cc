#include "ops/device_loops.h"

#include <unordered_map>

namespace taeda {

const cuda::Loop& device_loop(const DenseTable& table) {
  static const auto& known = *new auto([] {
    std::unordered_map<const DenseTable*, const cuda::Loop*> loops;
    for (const DeviceLoop& row : device_loops()) loops.emplace(&row.table(), &row.loop);
    return loops;
  }());
  return *known.at(&table);
}

}  // namespace taeda
