#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace taeda {
namespace {

// v1 states "no limit" as the largest multiple of the page size.
constexpr int64_t kUnlimited = int64_t{1} << 60;

bool lists(std::string_view controllers, std::string_view controller) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == controller) return true;
    if (comma == std::string_view::npos) break;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

void add_path(std::vector<CgroupFolder>& folders, const std::string& root, std::string path,
              bool v2) {
  while (true) {
    folders.push_back({root + path, v2});
    if (path.empty()) return;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

// The number in a file; 0 when there is none ("max").
int64_t number_in(const std::string& file) {
  int64_t value = 0;
  std::ifstream stream(file);
  return stream >> value ? value : 0;
}

int64_t memory_limit(const CgroupFolder& folder) {
  const int64_t limit =
      number_in(folder.path + (folder.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  return limit >= kUnlimited ? 0 : limit;
}

// Page cache, which the kernel drops before it kills anyone.
int64_t reclaimable(const CgroupFolder& folder) {
  std::ifstream stream(folder.path + "/memory.stat");
  const std::string prefix = folder.v2 ? "" : "total_";
  int64_t total = 0, value;
  for (std::string name; stream >> name >> value;)
    if (name == prefix + "inactive_file" || name == prefix + "active_file") total += value;
  return total;
}

int64_t memory_usage(const CgroupFolder& folder) {
  const int64_t usage =
      number_in(folder.path + (folder.v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  return std::max<int64_t>(0, usage - reclaimable(folder));
}

}  // namespace

std::vector<CgroupFolder> cgroup_folders(std::string_view proc_cgroup, const std::string& root,
                                         std::string_view controller) {
  std::vector<CgroupFolder> folders;
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
    if (controllers.empty()) {
      add_path(folders, root, path, /*v2=*/true);
    } else if (lists(controllers, controller)) {
      // v1 mounts each controller, or those that belong together, in a folder of its own.
      const std::string alone = root + "/" + std::string(controller);
      const std::string together = root + "/" + std::string(controllers);
      add_path(folders, alone, path, /*v2=*/false);
      if (together != alone) add_path(folders, together, path, /*v2=*/false);
      if (controllers != "cpu,cpuacct" && controller == "cpu")
        add_path(folders, root + "/cpu,cpuacct", path, /*v2=*/false);
    }
  }
  return folders;
}

std::string own_cgroups() {
  std::ifstream file("/proc/self/cgroup");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

CgroupMemory::CgroupMemory(std::string_view proc_cgroup, const std::string& root) {
  for (CgroupFolder& folder : cgroup_folders(proc_cgroup, root, "memory")) {
    const int64_t limit = memory_limit(folder);
    if (limit > 0) {
      const int64_t others = memory_usage(folder);
      limited_.push_back({std::move(folder), limit, others});
    }
  }
}

int64_t CgroupMemory::limit() const {
  int64_t limit = 0;
  for (const Limited& l : limited_) limit = limit > 0 ? std::min(limit, l.limit) : l.limit;
  return limit;
}

int64_t CgroupMemory::available(int64_t reserved) const {
  int64_t available = INT64_MAX;
  for (const Limited& l : limited_) {
    const int64_t used = std::max(memory_usage(l.folder), l.others + reserved);
    available = std::min(available, std::max<int64_t>(0, l.limit - used));
  }
  return available;
}

}  // namespace taeda
