#include "core/shared/table.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "core/shared/available_memory.h"
#include "taeda/error.h"

namespace taeda::shared {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFirstSegment = size_t{64} << 20;
constexpr int kMostDoublings = 10;
constexpr size_t kSegmentReserve = size_t{1} << 20;  // beside the block that it is made for
// Segments of other processes that nobody uses here, and descriptors of such segments.
constexpr uint32_t kMostIdle = 64;
constexpr uint32_t kMostDescriptors = 64;
constexpr std::chrono::milliseconds kBetweenLooks{200};
// Between the arrival of a segment and that of the tensor for which it was sent.
constexpr std::chrono::seconds kToUnpickle{60};
// Free memory that a process's segments keep, since pages that exist are faster than new ones.
constexpr int64_t kMostWarmBytes = int64_t{128} << 20;
// From here on it is worth asking whether the segment's creator is there to use a block again.
constexpr size_t kLarge = size_t{1} << 20;

}  // namespace

SegmentTable& SegmentTable::instance() {
  static SegmentTable& table = *new SegmentTable;
  return table;
}

Mapped* SegmentTable::find(const SegmentId& id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

// --- Segments of other processes ---

Mapped& SegmentTable::map(int descriptor) {
  SegmentId id;
  if (Segment::read_id(descriptor, id)) {
    if (Mapped* known = find(id)) {
      close(descriptor);
      known->arrived = Clock::now();
      known->used = false;
      return *known;
    }
  }
  auto mapped = std::make_unique<Mapped>();
  mapped->segment = Segment::map(descriptor);
  mapped->arrived = Clock::now();
  join(*mapped);
  unmap_idle();
  by_id_[mapped->segment->id()] = mapped.get();
  segments_.push_back(std::move(mapped));
  close_descriptors();
  return *segments_.back();
}

void SegmentTable::join(Mapped& mapped) {
  if (mapped.segment->slot() >= 0 || mapped.segment->join()) return;
  forget_dead(mapped);
  TD_CHECK(mapped.segment->join(),
           "share_memory: at most {} processes can use the tensors of one process at a time",
           kMostProcesses);
}

bool SegmentTable::is_idle(const Mapped& mapped) const {
  return !mapped.pool && mapped.held == 0 &&
         (mapped.used || Clock::now() - mapped.arrived > kToUnpickle);
}

// What nobody uses here any more, of processes that have ended, or more than kMostIdle.
void SegmentTable::unmap_idle() {
  uint32_t idle = 0;
  for (auto i = segments_.rbegin(); i != segments_.rend(); ++i) {
    Mapped& mapped = **i;
    if (!is_idle(mapped)) continue;
    if (idle++ < kMostIdle && mapped.segment->creator_runs()) continue;
    by_id_.erase(mapped.segment->id());
    i->reset();
  }
  std::erase(segments_, nullptr);
}

// They serve to send on what was received, which also works by way of the segment's creator.
void SegmentTable::close_descriptors() {
  uint32_t open = 0;
  for (auto i = segments_.rbegin(); i != segments_.rend(); ++i)
    if (!(*i)->pool && (*i)->segment->descriptor() >= 0 && open++ >= kMostDescriptors)
      (*i)->segment->close_descriptor();
}

// --- Blocks ---

std::pair<Mapped*, uint32_t> SegmentTable::allocate(size_t bytes) {
  if (!children_.empty()) forget_ended_children();
  try {
    auto found = allocate_from_segments(bytes);
    if (found.first) return found;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) throw;
  }
  reclaim();
  auto found = allocate_from_segments(bytes);
  if (found.first) return found;
  check_memory(bytes);
  Mapped& fresh = add_own(bytes);
  const std::optional<uint32_t> block = fresh.pool->allocate(bytes);
  TD_CHECK(block, "share_memory: a new segment has no room for {} bytes",
           static_cast<int64_t>(bytes));
  retain(fresh, *block);
  limit_warm_bytes();
  return {&fresh, *block};
}

std::pair<Mapped*, uint32_t> SegmentTable::allocate_from_segments(size_t bytes) {
  for (const auto& mapped : segments_) {
    if (!mapped->pool) continue;
    mapped->pool->collect();
    if (const std::optional<uint32_t> block = mapped->pool->allocate(bytes)) {
      retain(*mapped, *block);
      limit_warm_bytes();
      return {mapped.get(), *block};
    }
  }
  return {nullptr, 0};
}

// Each segment is twice the last one, since pages cost nothing before they are used; smaller where
// the address space is limited.
Mapped& SegmentTable::add_own(size_t bytes) {
  TD_CHECK_AS(ErrorKind::kOutOfMemory, bytes < size_t{1} << 46,
              "share_memory: cannot get {} bytes of shared memory", static_cast<int64_t>(bytes));
  auto mapped = std::make_unique<Mapped>();
  const size_t least = bytes + kSegmentReserve;
  size_t size =
      std::max(kFirstSegment << std::min(own_segments_, kMostDoublings), std::bit_ceil(2 * bytes));
  while (!(mapped->segment = Segment::create(size)) && size > least)
    size = std::max(size / 2, least);
  TD_CHECK_AS(ErrorKind::kOutOfMemory, mapped->segment,
              "share_memory: no address space for {} bytes", static_cast<int64_t>(bytes));
  mapped->pool = std::make_unique<BlockPool>(*mapped->segment);
  own_segments_++;
  by_id_[mapped->segment->id()] = mapped.get();
  segments_.push_back(std::move(mapped));
  return *segments_.back();
}

// All that can be had without a new segment: blocks of processes that were killed, blocks that
// nobody told us of, and free memory in other sizes.
void SegmentTable::reclaim() {
  for (const auto& mapped : segments_) {
    if (!mapped->pool) continue;
    forget_dead(*mapped);
    mapped->segment->drop_lost_messages([&](uint32_t block) { free_unused(*mapped, block); });
    mapped->pool->collect_all();
    mapped->pool->trim(0);
  }
  unmap_idle();
}

// Of all own segments together, and tells those who free blocks how much each may keep.
void SegmentTable::limit_warm_bytes() {
  int64_t total = 0;
  for (const auto& mapped : segments_) {
    if (!mapped->pool) continue;
    const int64_t warm = mapped->segment->warm_bytes().load();
    total += warm;
    if (total <= kMostWarmBytes || warm <= 0) continue;
    mapped->pool->collect();
    mapped->pool->trim(std::max<int64_t>(0, warm - (total - kMostWarmBytes)));
    total += mapped->segment->warm_bytes().load() - warm;
  }
  const int64_t rest = std::max<int64_t>(0, kMostWarmBytes - total);
  for (const auto& mapped : segments_) {
    if (!mapped->pool) continue;
    const int64_t most = mapped->segment->warm_bytes().load() + rest;
    if (mapped->segment->most_warm_bytes().load() != most)
      mapped->segment->most_warm_bytes().store(most);
  }
}

void SegmentTable::forget_dead(Mapped& mapped) {
  mapped.segment->forget_dead([&](uint32_t block) { free_unused(mapped, block); });
}

void SegmentTable::retain(Mapped& mapped, uint32_t block) {
  if (block >= mapped.counts.size()) mapped.counts.resize(block + 1);
  if (mapped.counts[block]++ == 0) mapped.held++;
  mapped.used = true;
}

void SegmentTable::release(Mapped& mapped, uint32_t block) {
  if (--mapped.counts[block] > 0) return;
  mapped.held--;
  if (mapped.segment->slot() >= 0)
    remove_holder(mapped.segment->block(block), mapped.segment->slot());
  free_unused(mapped, block);
  if (mapped.held > 0 || mapped.pool) return;
  const auto now = Clock::now();
  if (now - last_look_ < kBetweenLooks) return;
  last_look_ = now;
  unmap_idle();
}

void SegmentTable::drop_message(Mapped& mapped, uint32_t block, uint64_t generation) {
  if (remove_message(mapped.segment->block(block), generation)) free_unused(mapped, block);
}

// Frees a block that nobody uses. Its pages stay for the next tensor, unless there are enough.
void SegmentTable::free_unused(Mapped& mapped, uint32_t block) {
  const Segment& segment = *mapped.segment;
  BlockHeader& header = segment.block(block);
  if (!claim_unused(header)) return;
  BlockState state = BlockState::kFree;
  const size_t offset = header.offset, bytes = header.bytes;
  if (bytes > kMostSmall && offset < segment.size() && bytes <= segment.size() - offset) {
    const auto warm = segment.warm_bytes().fetch_add(static_cast<int64_t>(bytes));
    const bool reused = mapped.pool || bytes < kLarge || segment.creator_runs();
    const int64_t most = reused ? segment.most_warm_bytes().load() : 0;
    if (warm + static_cast<int64_t>(bytes) > most) {
      segment.discard(offset, bytes);
      segment.warm_bytes().fetch_sub(static_cast<int64_t>(bytes));
      state = BlockState::kTrimmed;
    }
  }
  set_state(header, state);
  const uint64_t n = segment.freed().fetch_add(1);
  segment.hints()[n % Segment::kHints].store(block);
}

}  // namespace taeda::shared
