#include "data/memory_map.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace taeda::data {
namespace {

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

}  // namespace taeda::data
