// BlockAllocator: one process's blocks of a SharedArea.
//
// Only the process that made a block gives it out again, once nobody holds it: no lock is shared
// with another process, so that none can be left locked by one that dies. Blocks come in four sizes
// a doubling; those used before, whose pages are there, come first. Not thread-safe.
#pragma once

#include <map>
#include <vector>

#include "data/shared_area.h"

namespace taeda::data {

class BlockAllocator {
 public:
  // In the bytes of `area` from `begin` to `end`.
  BlockAllocator(SharedArea& area, size_t begin, size_t end);

  // A block with one holder, its contents undefined; null when the range or the memory is used up.
  // One of up to kReserved bytes always exists, unless it is held.
  Block* allocate(size_t bytes);
  static constexpr size_t kReserved = 4032;

 private:
  struct Known {
    size_t offset;
    size_t committed;  // bytes from the offset on
  };
  using Blocks = std::vector<Known>;
  Block* at(const Known& known) const;
  Block* use(Known& known, size_t needed);
  Block* grow(size_t size, size_t needed);
  void trim();

  SharedArea& area_;
  size_t top_, end_;
  Known reserved_;
  std::map<size_t, Blocks> by_size_;
};

}  // namespace taeda::data
