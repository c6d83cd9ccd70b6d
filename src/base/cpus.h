// How many CPUs this process may use: the scheduler's affinity mask and the cgroup's CPU quota (v1
// and v2).
#pragma once

#include <string>
#include <string_view>

namespace taeda {

// At least 1.
int available_cpus();

// The quota in CPUs, rounded up, of the cgroup that `proc_cgroup` (the text of /proc/self/cgroup)
// names and of its parents, as found below `root` (/sys/fs/cgroup); 0 when there is none.
int cgroup_cpu_limit(std::string_view proc_cgroup, const std::string& root);

}  // namespace taeda
