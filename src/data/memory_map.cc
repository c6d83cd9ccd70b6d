#include "data/memory_map.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace taeda::data {
namespace {

// Of <linux/fs.h>, whose older versions do not have them.
struct ScannedRun {
  uint64_t begin, end, categories;
};
struct ScanArguments {
  uint64_t size = sizeof(ScanArguments), flags = 0;
  uint64_t begin, end, walk_end = 0;
  uint64_t runs, n_runs, max_pages = 0;
  uint64_t inverted, all_of, any_of, returned;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanArguments);
constexpr uint64_t kIsFile = 1 << 2, kIsPresent = 1 << 3, kIsSwapped = 1 << 4;
constexpr size_t kMostRuns = 256;

bool before(const PageRange& a, const PageRange& b) { return a.begin < b.begin; }

}  // namespace

std::vector<PageRange> intersect(std::vector<PageRange> a, std::vector<PageRange> b) {
  std::sort(a.begin(), a.end(), before);
  std::sort(b.begin(), b.end(), before);
  std::vector<PageRange> common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const PageRange both = {std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) {
      if (!common.empty() && common.back().end == both.begin)
        common.back().end = both.end;
      else
        common.push_back(both);
    }
    a[i].end < b[j].end ? ++i : ++j;
  }
  return common;
}

MemoryMap read_memory_map() {
  MemoryMap map;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    map.has_request_queue |= line.ends_with("[aio]") || line.ends_with("[io_uring]");
    if (line.find(" rw-p ") == std::string::npos) continue;
    Mapping mapping;
    char permissions[5];
    unsigned major, minor;
    unsigned long inode;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %x:%x %lu",
                    &mapping.range.begin, &mapping.range.end, permissions, &mapping.offset, &major,
                    &minor, &inode) != 7)
      continue;
    mapping.device = makedev(major, minor);
    mapping.inode = inode;
    mapping.heap = line.ends_with("[heap]");
    map.writable.push_back(mapping);
  }
  return map;
}

PageStates::PageStates() : file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
PageStates::~PageStates() {
  if (file_ >= 0) close(file_);
}

size_t PageStates::page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

bool PageStates::read(uintptr_t begin, std::span<uint64_t> states) const {
  const auto at = static_cast<off_t>(begin / page_bytes() * sizeof(uint64_t));
  return pread(file_, states.data(), states.size_bytes(), at) ==
         static_cast<ssize_t>(states.size_bytes());
}

ssize_t PageStates::scan(uintptr_t& begin, uintptr_t end, std::span<PageRange> runs) const {
  ScannedRun found[kMostRuns];
  ScanArguments arguments = {.begin = begin,
                             .end = end,
                             .runs = reinterpret_cast<uintptr_t>(found),
                             .n_runs = std::min(runs.size(), kMostRuns),
                             .inverted = kIsFile,
                             .all_of = kIsFile,
                             .any_of = kIsPresent | kIsSwapped,
                             .returned = kIsFile};
  const int n = ioctl(file_, kScan, &arguments);
  for (int i = 0; i < n; i++) runs[static_cast<size_t>(i)] = {found[i].begin, found[i].end};
  if (n >= 0) begin = arguments.walk_end;
  return n;
}

ssize_t PageStates::find_copies(uintptr_t& begin, uintptr_t end, std::span<PageRange> runs) const {
  static bool can_scan = true;
  if (can_scan) {
    const ssize_t n = scan(begin, end, runs);
    if (n >= 0) return n;
    can_scan = false;
  }
  const size_t page = page_bytes();
  uint64_t states[kMostRuns];
  const size_t n = std::min({runs.size(), kMostRuns, (end - begin) / page});
  if (!read(begin, {states, n})) return -1;
  ssize_t found = 0;
  for (size_t i = 0; i < n; i++, begin += page) {
    if (!is_anonymous(states[i])) continue;
    PageRange* const last = found > 0 ? &runs[static_cast<size_t>(found - 1)] : nullptr;
    if (last && last->end == begin)
      last->end += page;
    else
      runs[static_cast<size_t>(found++)] = {begin, begin + page};
  }
  return found;
}

}  // namespace taeda::data
