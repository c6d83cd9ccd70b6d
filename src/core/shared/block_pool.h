// BlockPool: how a segment's creator hands out its blocks. Not safe for threads.
//
// Blocks of up to kMostSmall bytes come from slabs, runs of 64 KiB cut into blocks of one size;
// larger ones are runs of pages. All of its lists are in memory of its own. What other processes
// have freed it finds by the hints that they leave, or by looking at all headers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/shared/page_runs.h"
#include "core/shared/segment.h"

namespace taeda::shared {

constexpr size_t kMostSmall = size_t{16} << 10;
class BlockPool {
 public:
  explicit BlockPool(Segment& segment);

  // The header of a block of at least so many bytes that this process holds. Nothing when there is
  // no room for it in the segment; OutOfMemoryError when there is no memory.
  std::optional<uint32_t> allocate(size_t bytes);
  // Takes back what was freed since the last call.
  void collect();
  // The same, by looking at each block: finds those whose freeing process died before it had left
  // a hint.
  void collect_all();
  // Gives memory back to the system until at most so many bytes are free and warm.
  void trim(int64_t most_warm_bytes);

 private:
  struct Slab {
    size_t block_bytes;
    uint32_t blocks;
    std::vector<uint32_t> free;  // numbers of blocks
  };
  struct Handed {         // where a block's memory is
    uint32_t page = 0;    // the first of its run or slab
    uint32_t pages = 0;   // of a run; 0: a slab's
    uint32_t number = 0;  // in the slab
  };

  std::optional<uint32_t> take_header();
  std::optional<Handed> take_memory(size_t bytes);
  std::optional<Handed> take_small(size_t bytes);
  std::optional<uint32_t> take_run(uint32_t pages);
  void take_back_at(uint32_t index);
  void give_back(const Handed& handed, bool warm);
  size_t offset_of_page(uint32_t page) const;

  Segment& segment_;
  const size_t page_bytes_;
  const uint32_t slab_pages_;
  PageRuns runs_;
  std::map<uint32_t, Slab> slabs_;                        // by first page
  std::map<size_t, std::set<uint32_t>> slabs_with_room_;  // by size of block: first pages
  std::vector<Handed> handed_;                            // by header
  std::vector<uint32_t> free_headers_;
  uint32_t headers_populated_ = 0;
  uint64_t seen_ = 0;  // of Segment::freed()
};

}  // namespace taeda::shared
