// What this process has mapped, and which of its pages are its own: /proc/self/maps and pagemap.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace taeda::data {

// Addresses of whole pages.
struct PageRange {
  uintptr_t begin, end;

  size_t bytes() const { return end - begin; }
  bool contains(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return begin <= at && at < end;
  }
};

// The ranges of both, in order.
std::vector<PageRange> intersect(std::vector<PageRange> a, std::vector<PageRange> b);

// A line of /proc/self/maps: a private mapping that can be read and written.
struct Mapping {
  PageRange range;
  uint64_t offset;  // in the file
  dev_t device;
  ino_t inode;  // 0: no file
  bool heap;    // what brk() moves the end of
};

struct MemoryMap {
  std::vector<Mapping> writable;   // the private ones; none when the system does not say
  bool has_request_queue = false;  // of asynchronous input and output
};
MemoryMap read_memory_map();

// Reads /proc/self/pagemap, or has the system look through it (PAGEMAP_SCAN of Linux 6.7).
class PageStates {
 public:
  PageStates();
  ~PageStates();
  PageStates(const PageStates&) = delete;
  PageStates& operator=(const PageStates&) = delete;

  static size_t page_bytes();
  bool available() const { return file_ >= 0; }
  // The states of the pages from `begin` on; false when they cannot be had.
  bool read(uintptr_t begin, std::span<uint64_t> states) const;
  // The first runs of pages from `begin` on that are no file's, in memory or swapped out: of a
  // private mapping of a file, the changed copies. `begin` becomes where it stopped, which is `end`
  // when there are no more. Returns how many; -1 when they cannot be had.
  ssize_t find_copies(uintptr_t& begin, uintptr_t end, std::span<PageRange> runs) const;

  // There is memory behind the address: it was touched, and may be swapped out.
  static bool exists(uint64_t state) { return state >> 62 != 0; }
  // Memory of this process alone.
  static bool is_exclusive(uint64_t state) {
    return state >> 63 && is_anonymous(state) && (state >> 56 & 1);
  }
  // Memory that is no file's.
  static bool is_anonymous(uint64_t state) { return exists(state) && !(state >> 61 & 1); }

 private:
  ssize_t scan(uintptr_t& begin, uintptr_t end, std::span<PageRange> runs) const;
  int file_;
};

}  // namespace taeda::data
