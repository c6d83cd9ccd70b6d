#include "base/cpus.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

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

// The tightest quota from `path` up to the root.
int quota_of_path(const std::string& root, std::string path, bool v2) {
  int limit = 0;
  while (true) {
    const int here = quota_of_folder(root + path, v2);
    if (here > 0) limit = limit > 0 ? std::min(limit, here) : here;
    if (path.empty()) return limit;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

bool lists_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) break;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

int cgroup_cpu_limit(std::string_view proc_cgroup, const std::string& root) {
  int limit = 0;
  // Each line is "id:controllers:path"; v2's has no controllers.
  while (!proc_cgroup.empty()) {
    const size_t end = proc_cgroup.find('\n');
    const std::string_view line = proc_cgroup.substr(0, end);
    proc_cgroup.remove_prefix(end == std::string_view::npos ? proc_cgroup.size() : end + 1);
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string path(line.substr(second + 1));
    if (path == "/") path.clear();
    int here = 0;
    if (controllers.empty())
      here = quota_of_path(root, path, /*v2=*/true);
    else if (lists_cpu(controllers)) {
      here = quota_of_path(root + "/cpu", path, /*v2=*/false);
      if (here == 0) here = quota_of_path(root + "/cpu,cpuacct", path, /*v2=*/false);
    }
    if (here > 0) limit = limit > 0 ? std::min(limit, here) : here;
  }
  return limit;
}

int available_cpus() {
  int cpus = std::max(1, affinity_cpus());
  std::ifstream file("/proc/self/cgroup");
  std::stringstream text;
  text << file.rdbuf();
  const int limit = cgroup_cpu_limit(text.str(), "/sys/fs/cgroup");
  return limit > 0 ? std::min(cpus, limit) : cpus;
}

}  // namespace taeda
