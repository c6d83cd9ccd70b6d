// What a caching allocator is made of: segments, the blocks that they are cut into, and the pools
// that keep free blocks by size.
//
// A segment is what the device gave; its blocks lie side by side and cover it. The addresses of an
// expandable segment are reserved at once, and memory is put behind them in granules: blocks of the
// state kUnmapped have none. Free blocks are in their pool's `free`, unmapped ones in `unmapped`.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "core/memory_stats.h"

namespace taeda::detail {

struct MemorySegment;
struct MemoryPool;

struct MemoryBlock {
  char* address;
  int64_t bytes;
  MemorySegment* segment;
  MemoryBlock* previous = nullptr;  // neighbours inside the segment
  MemoryBlock* next = nullptr;
  BlockInfo::State state = BlockInfo::State::kFree;
  int64_t requested = 0;
  int events = 0;             // streams that have not passed their event yet
  std::set<int64_t> streams;  // used by, besides the segment's
  MemoryContextRef context = nullptr;

  bool is_free() const { return state == BlockInfo::State::kFree; }
  bool is_unmapped() const { return state == BlockInfo::State::kUnmapped; }
  bool is_split() const { return previous || next; }
};

struct MemorySegment {
  char* address;
  int64_t bytes;  // with memory behind them
  MemoryPool* pool;
  MemoryBlock* first = nullptr;
  std::chrono::steady_clock::time_point last_use{};
  // Of expandable segments: the granule, the addresses reserved, and each granule's handle or 0.
  int64_t granule = 0;
  int64_t reserved_bytes = 0;
  std::vector<uint64_t> handles{};

  bool expandable() const { return granule > 0; }
};

struct SmallestFirst {
  bool operator()(const MemoryBlock* a, const MemoryBlock* b) const {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
  }
};
struct ByAddress {
  bool operator()(const MemoryBlock* a, const MemoryBlock* b) const {
    return a->address < b->address;
  }
};

// Memory set apart for a graph or by a program (torch.cuda.MemPool).
struct PrivatePool {
  int uses = 0;  // who asked for it; without any, its free memory goes back to the device
  bool use_on_oom = false, no_split = false;
  int64_t segments = 0, allocated_bytes = 0;
  MemoryStats::Levels reserved_bytes{};
};

// Free blocks of one stream, small or large.
struct MemoryPool {
  PoolName name;
  int64_t stream;
  bool small;
  PrivatePool* owner;  // null: the default pool
  std::set<MemoryBlock*, SmallestFirst> free{};
  std::set<MemoryBlock*, ByAddress> unmapped{};
  MemorySegment* expandable = nullptr;
};

// The next block is part of this one from now on.
inline void absorb_next(MemoryBlock* block) {
  MemoryBlock* next = block->next;
  block->bytes += next->bytes;
  block->next = next->next;
  if (block->next) block->next->previous = block;
  delete next;
}

// Cuts a block; the new one behind it has its state.
inline MemoryBlock* cut(MemoryBlock* block, int64_t bytes) {
  auto* tail = new MemoryBlock{block->address + bytes,
                               block->bytes - bytes,
                               block->segment,
                               block,
                               block->next,
                               block->state};
  if (tail->next) tail->next->previous = tail;
  block->next = tail;
  block->bytes = bytes;
  return tail;
}

}  // namespace taeda::detail
