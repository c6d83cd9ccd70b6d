#include "base/cpus.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/cgroup.h"

namespace taeda {
namespace {

int affinity_cpus() {
  // Machines with more CPUs than cpu_set_t has bits need a larger set: grow until the kernel
  // accepts it.
  for (int cpus = 1024; cpus <= 1 << 16; cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int status = sched_getaffinity(0, bytes, set);
    const int count = status == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

// CPUs of one folder's quota, rounded up; 0 without one.
int quota_of_folder(const std::string& folder, bool v2) {
  double quota = -1, period = 0;
  if (v2) {
    std::ifstream file(folder + "/cpu.max");
    std::string first;
    if (!(file >> first >> period) || first == "max") return 0;
    std::istringstream(first) >> quota;
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  if (!(quota > 0) || !(period > 0)) return 0;
  return std::max(1, static_cast<int>((quota + period - 1) / period));
}

}  // namespace

int cgroup_cpu_limit(std::string_view proc_cgroup, const std::string& root) {
  int limit = 0;
  for (const CgroupFolder& folder : cgroup_folders(proc_cgroup, root, "cpu")) {
    const int here = quota_of_folder(folder.path, folder.v2);
    if (here > 0) limit = limit > 0 ? std::min(limit, here) : here;
  }
  return limit;
}

int available_cpus() {
  const int cpus = std::max(1, affinity_cpus());
  const int limit = cgroup_cpu_limit(own_cgroups(), "/sys/fs/cgroup");
  return limit > 0 ? std::min(cpus, limit) : cpus;
}

}  // namespace taeda
