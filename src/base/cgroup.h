// The control groups that this process is in, and what they allow: Linux's way of giving a
// container less than the machine has. Both versions are read; a process may be in both at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taeda {

struct CgroupFolder {
  std::string path;
  bool v2;
};

// The folders below `root` (/sys/fs/cgroup) of the cgroup that holds `controller` ("cpu",
// "memory") for a process whose /proc/self/cgroup reads `proc_cgroup`: its own first, then its
// parents' up to the root, which limit it as well. Inside a container only some of them may exist.
std::vector<CgroupFolder> cgroup_folders(std::string_view proc_cgroup, const std::string& root,
                                         std::string_view controller);

// The text of /proc/self/cgroup; empty where there is none.
std::string own_cgroups();

// Memory that cgroups allow this process. Reading it takes two small files a limiting cgroup.
class CgroupMemory {
 public:
  CgroupMemory(std::string_view proc_cgroup, const std::string& root);

  // The tightest limit in bytes; 0: none.
  int64_t limit() const;
  // How much may still be allocated, given that `reserved` bytes of this process's are spoken for
  // although they may not have been touched, and so not be counted, yet. INT64_MAX without a limit.
  int64_t available(int64_t reserved) const;

 private:
  struct Limited {
    CgroupFolder folder;
    int64_t limit;
    int64_t others;  // in use when this was made: the program, its libraries, other processes
  };
  std::vector<Limited> limited_;
};

}  // namespace taeda
