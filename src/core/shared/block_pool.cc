#include "core/shared/block_pool.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

namespace taeda::shared {
namespace {

constexpr size_t kSlabBytes = size_t{64} << 10;
constexpr size_t kLine = 64;

// Multiples of a cache line up to 1 KiB, then four sizes from each power of two to the next.
size_t small_size(size_t bytes) {
  const size_t n = std::max(bytes, kLine);
  const size_t step = n <= 1024 ? kLine : std::bit_floor(n - 1) / 4;
  return (n + step - 1) / step * step;
}

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

BlockPool::BlockPool(Segment& segment)
    : segment_(segment),
      page_bytes_(page_size()),
      slab_pages_(static_cast<uint32_t>(std::max<size_t>(1, kSlabBytes / page_bytes_))),
      runs_(static_cast<uint32_t>(segment.memory_bytes() / page_bytes_)) {}

size_t BlockPool::offset_of_page(uint32_t page) const {
  return segment_.memory_offset() + page * page_bytes_;
}

std::optional<uint32_t> BlockPool::allocate(size_t bytes) {
  const std::optional<uint32_t> index = take_header();
  if (!index) return std::nullopt;
  std::optional<Handed> memory;
  try {
    memory = take_memory(bytes);
  } catch (...) {
    free_headers_.push_back(*index);
    throw;
  }
  if (!memory) {
    free_headers_.push_back(*index);
    return std::nullopt;
  }
  BlockHeader& block = segment_.block(*index);
  const size_t size =
      memory->pages > 0 ? memory->pages * page_bytes_ : slabs_[memory->page].block_bytes;
  block.offset = offset_of_page(memory->page) + memory->number * size;
  block.bytes = size;
  handed_[*index] = *memory;
  hand_out(block, segment_.slot());
  return index;
}

std::optional<uint32_t> BlockPool::take_header() {
  if (free_headers_.empty()) {
    const uint32_t n = segment_.blocks_used().load();
    if (n == segment_.most_blocks()) return std::nullopt;
    if (n == headers_populated_) {
      const auto more = std::min(static_cast<uint32_t>(kSlabBytes / sizeof(BlockHeader)),
                                 segment_.most_blocks() - n);
      const auto begin =
          static_cast<size_t>(reinterpret_cast<char*>(&segment_.block(n)) - segment_.base());
      segment_.populate(begin, more * sizeof(BlockHeader));
      headers_populated_ = n + more;
    }
    handed_.resize(n + 1);
    free_headers_.push_back(n);
    segment_.blocks_used().store(n + 1);
  }
  const uint32_t index = free_headers_.back();
  free_headers_.pop_back();
  return index;
}

std::optional<BlockPool::Handed> BlockPool::take_memory(size_t bytes) {
  if (bytes <= kMostSmall) return take_small(small_size(bytes));
  const size_t pages = bytes / page_bytes_ + (bytes % page_bytes_ != 0);
  if (pages > runs_.free_pages()) return std::nullopt;
  const std::optional<uint32_t> first = take_run(static_cast<uint32_t>(pages));
  if (!first) return std::nullopt;
  return Handed{*first, static_cast<uint32_t>(pages), 0};
}

std::optional<BlockPool::Handed> BlockPool::take_small(size_t bytes) {
  std::set<uint32_t>& with_room = slabs_with_room_[bytes];
  if (with_room.empty()) {
    const std::optional<uint32_t> first = take_run(slab_pages_);
    if (!first) return std::nullopt;
    Slab slab{bytes, static_cast<uint32_t>(slab_pages_ * page_bytes_ / bytes), {}};
    for (uint32_t i = slab.blocks; i-- > 0;) slab.free.push_back(i);
    slabs_[*first] = std::move(slab);
    with_room.insert(*first);
  }
  const uint32_t page = *with_room.begin();
  Slab& slab = slabs_[page];
  const uint32_t number = slab.free.back();
  slab.free.pop_back();
  if (slab.free.empty()) with_room.erase(page);
  return Handed{page, 0, number};
}

std::optional<uint32_t> BlockPool::take_run(uint32_t pages) {
  const std::optional<PageRuns::Run> run = runs_.take(pages);
  if (!run) return std::nullopt;
  if (run->warm) {
    segment_.warm_bytes().fetch_sub(static_cast<int64_t>(pages * page_bytes_));
    return run->first;
  }
  try {
    segment_.populate(offset_of_page(run->first), pages * page_bytes_);
  } catch (...) {
    runs_.give(*run);
    throw;
  }
  return run->first;
}

void BlockPool::collect() {
  const uint64_t freed = segment_.freed().load();
  if (freed == seen_) return;
  if (freed - seen_ > Segment::kHints) return collect_all();
  for (; seen_ != freed; seen_++) take_back_at(segment_.hints()[seen_ % Segment::kHints].load());
}

void BlockPool::collect_all() {
  const uint64_t freed = segment_.freed().load();
  const auto n = static_cast<uint32_t>(handed_.size());
  for (uint32_t i = 0; i < n; i++) take_back_at(i);
  seen_ = freed;
}

void BlockPool::take_back_at(uint32_t index) {
  if (index >= handed_.size()) return;
  const BlockState state = take_back(segment_.block(index));
  if (state == BlockState::kUsed) return;
  free_headers_.push_back(index);
  give_back(handed_[index], state == BlockState::kFree);
}

void BlockPool::give_back(const Handed& handed, bool warm) {
  // Whoever freed a run has counted it in warm_bytes().
  if (handed.pages > 0) return runs_.give({handed.page, handed.pages, warm});
  Slab& slab = slabs_[handed.page];
  std::set<uint32_t>& with_room = slabs_with_room_[slab.block_bytes];
  slab.free.push_back(handed.number);
  with_room.insert(handed.page);
  if (slab.free.size() < slab.blocks || with_room.size() == 1) return;
  with_room.erase(handed.page);
  slabs_.erase(handed.page);
  runs_.give({handed.page, slab_pages_, true});
  segment_.warm_bytes().fetch_add(static_cast<int64_t>(slab_pages_ * page_bytes_));
}

void BlockPool::trim(int64_t most_warm_bytes) {
  while (segment_.warm_bytes().load() > most_warm_bytes) {
    const std::optional<PageRuns::Run> run = runs_.take_warm();
    if (!run) return;  // the rest was freed and not yet collected
    const auto bytes = static_cast<int64_t>(run->pages * page_bytes_);
    segment_.discard(offset_of_page(run->first), static_cast<size_t>(bytes));
    segment_.warm_bytes().fetch_sub(bytes);
    runs_.give({run->first, run->pages, false});
  }
}

}  // namespace taeda::shared
