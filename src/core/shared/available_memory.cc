#include "core/shared/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/cgroup.h"
#include "base/fail_allocation.h"
#include "taeda/error.h"

namespace taeda::shared {
namespace {

constexpr size_t kSmall = size_t{1} << 20;

// What programs may use before the machine has none left, swap included.
int64_t system_available() {
  std::ifstream file("/proc/meminfo");
  int64_t available = 0, kilobytes;
  bool known = false;
  std::string name, unit;
  while (file >> name >> kilobytes && std::getline(file, unit)) {
    if (name == "MemAvailable:" || name == "SwapFree:") available += kilobytes << 10;
    known |= name == "MemAvailable:";
    if (name == "SwapFree:") break;
  }
  return known ? available : std::numeric_limits<int64_t>::max();
}

// For the machine and this process's cgroups.
int64_t available() {
  static const CgroupMemory& cgroups = *new CgroupMemory(own_cgroups(), "/sys/fs/cgroup");
  return std::min(system_available(), cgroups.available(0));
}

}  // namespace

bool is_memory_available(size_t bytes) {
  return bytes < kSmall || bytes <= static_cast<size_t>(std::max<int64_t>(available(), 0));
}

void check_memory(size_t bytes) {
  if (allocation_fails())
    fail(ErrorKind::kOutOfMemory,
         "share_memory: cannot get {} bytes of shared memory (injected failure)",
         static_cast<int64_t>(bytes));
  TD_CHECK_AS(ErrorKind::kOutOfMemory, is_memory_available(bytes),
              "share_memory: cannot get {} bytes of shared memory, {} are available",
              static_cast<int64_t>(bytes), available());
}

}  // namespace taeda::shared
