#include "core/shared_memory.h"

#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "core/allocator.h"
#include "core/shared/in_place.h"
#include "core/shared/table.h"
#include "taeda/error.h"

namespace taeda {
namespace {

using shared::Hold;
using shared::Mapped;
using shared::SegmentTable;

void release_shared(void* context) {
  const std::unique_ptr<Hold> hold(static_cast<Hold*>(context));
  SegmentTable& table = SegmentTable::instance();
  const std::lock_guard<std::mutex> lock(table.mutex());
  table.release(*hold->mapped, hold->block);
}

std::optional<Hold> hold_of(const Storage& storage) {
  if (const void* const hold = storage.context_of(release_shared))
    return *static_cast<const Hold*>(hold);
  if (!storage.device().is_cpu()) return std::nullopt;
  return shared::in_place_hold(storage.data());
}

char* memory_of(const Hold& hold) {
  const shared::Segment& segment = *hold.mapped->segment;
  return segment.base() + segment.block(hold.block).offset;
}

std::unique_ptr<Hold> new_block(int64_t nbytes) {
  SegmentTable& table = SegmentTable::instance();
  auto hold = std::make_unique<Hold>();
  const std::lock_guard<std::mutex> lock(table.mutex());
  std::tie(hold->mapped, hold->block) = table.allocate(static_cast<size_t>(nbytes));
  return hold;
}

Ref<Storage> wrap_block(std::unique_ptr<Hold> hold, int64_t nbytes) {
  char* const memory = memory_of(*hold);
  try {
    Ref<Storage> storage =
        Storage::wrap(memory, nbytes, DeviceType::kCPU, release_shared, hold.get());
    hold.release();
    return storage;
  } catch (...) {
    release_shared(hold.release());
    throw;
  }
}

// The segment of a name and the block in it, which this process may be the first to use.
Mapped& find_named(SegmentTable& table, const SharedName& name) {
  Mapped* const mapped = table.find(name.segment);
  TD_CHECK(mapped, "share_memory: the memory of process {} is not mapped here", name.creator);
  TD_CHECK(name.nbytes >= 0 && name.block < mapped->segment->blocks_used().load() &&
               name.block < mapped->segment->most_blocks(),
           "share_memory: the message names a tensor that does not exist");
  return *mapped;
}

void check_extent(const shared::Segment& segment, const SharedName& name) {
  const shared::BlockHeader& block = segment.block(name.block);
  TD_CHECK(block.offset <= segment.size() && block.bytes <= segment.size() - block.offset &&
               static_cast<uint64_t>(name.nbytes) <= block.bytes,
           "share_memory: the message names {} bytes of a block of {}", name.nbytes,
           static_cast<int64_t>(block.bytes));
}

// A message's hold of the block becomes this process's. The bit is set before the message counts no
// more, so that the block never looks unused.
void receive(SegmentTable& table, Mapped& mapped, const SharedName& name) {
  shared::BlockHeader& block = mapped.segment->block(name.block);
  const bool first = !mapped.holds(name.block);
  if (first) {
    table.join(mapped);
    shared::add_holder(block, mapped.segment->slot());
  }
  table.retain(mapped, name.block);
  const bool known = name.ticket == 0 || mapped.segment->redeem_ticket(name.ticket);
  if (known && shared::receive_message(block, name.generation)) return;
  table.release(mapped, name.block);
  fail(ErrorKind::kRuntime,
       "share_memory: this message was received before, and its memory may be in use again");
}

}  // namespace

void share_memory(Storage& storage, bool prefer_in_place) {
  if (is_shared(storage)) return;
  TD_CHECK_IMPLEMENTED(storage.device().is_cpu(), "share_memory: a storage on {}",
                       storage.device());
  const bool in_place = (prefer_in_place || !storage.resizable()) &&
                        shared::can_share_in_place(storage.data(), storage.nbytes());
  // All of the allocator's block, into which the storage may grow.
  const int64_t nbytes = in_place ? cpu_block_bytes(storage.data()) : storage.nbytes();
  std::unique_ptr<Hold> hold = new_block(nbytes);
  if (in_place && shared::share_in_place(storage.data(), nbytes, *hold)) return;
  try {
    storage.replace(memory_of(*hold), release_shared, hold.get());
  } catch (...) {
    release_shared(hold.release());
    throw;
  }
  hold.release();
}

Ref<Storage> allocate_shared(int64_t nbytes) {
  TD_CHECK(nbytes >= 0, "share_memory: expected a size of at least 0 bytes, got {}", nbytes);
  return wrap_block(new_block(nbytes), nbytes);
}

bool is_shared(const Storage& storage) { return hold_of(storage).has_value(); }

SharedName send_shared(const Storage& storage) {
  const std::optional<Hold> hold = hold_of(storage);
  TD_CHECK(hold, "share_memory: expected a storage in shared memory");
  const shared::Segment& segment = *hold->mapped->segment;
  shared::BlockHeader& block = segment.block(hold->block);
  TD_CHECK(shared::add_message(block),
           "share_memory: too many messages name the same tensor and were not received");
  return {segment.id(),
          block.generation.load(),
          storage.nbytes(),
          hold->block,
          segment.creator(),
          segment.creator_descriptor(),
          segment.issue_ticket(hold->block)};
}

void set_message_location(const SharedName& name, uint32_t location, uint64_t network) {
  SegmentTable& table = SegmentTable::instance();
  const std::lock_guard<std::mutex> lock(table.mutex());
  if (Mapped* const mapped = table.find(name.segment))
    mapped->segment->set_location(name.ticket, location, network);
}

void drop_shared(const SharedName& name) {
  SegmentTable& table = SegmentTable::instance();
  const std::lock_guard<std::mutex> lock(table.mutex());
  Mapped* const mapped = table.find(name.segment);
  if (!mapped || name.block >= mapped->segment->blocks_used().load()) return;
  if (name.ticket != 0 && mapped->segment->is_received(name.ticket)) return;
  if (name.ticket == 0 || mapped->segment->redeem_ticket(name.ticket))
    table.drop_message(*mapped, name.block, name.generation);
}

bool is_under_way(const SharedName& name) {
  SegmentTable& table = SegmentTable::instance();
  const std::lock_guard<std::mutex> lock(table.mutex());
  const Mapped* const mapped = table.find(name.segment);
  return mapped && name.ticket != 0 && mapped->segment->is_issued(name.ticket);
}

Ref<Storage> receive_shared(const SharedName& name) {
  SegmentTable& table = SegmentTable::instance();
  auto hold = std::make_unique<Hold>();
  {
    const std::lock_guard<std::mutex> lock(table.mutex());
    Mapped& mapped = find_named(table, name);
    receive(table, mapped, name);
    *hold = {&mapped, name.block};
  }
  try {
    check_extent(*hold->mapped->segment, name);
  } catch (...) {
    release_shared(hold.release());
    throw;
  }
  return wrap_block(std::move(hold), name.nbytes);
}

bool is_mapped(const SharedName& name) {
  SegmentTable& table = SegmentTable::instance();
  const std::lock_guard<std::mutex> lock(table.mutex());
  return table.find(name.segment) != nullptr;
}

int segment_descriptor(const SharedName& name) {
  SegmentTable& table = SegmentTable::instance();
  const std::lock_guard<std::mutex> lock(table.mutex());
  const Mapped* const mapped = table.find(name.segment);
  return mapped ? mapped->segment->descriptor() : -1;
}

void map_segment(int descriptor) {
  SegmentTable& table = SegmentTable::instance();
  const std::lock_guard<std::mutex> lock(table.mutex());
  table.map(descriptor);
}

SharedMemoryStats shared_memory_stats() {
  SegmentTable& table = SegmentTable::instance();
  const std::lock_guard<std::mutex> lock(table.mutex());
  SharedMemoryStats stats{};
  for (const auto& mapped : table.all()) {
    stats.segments++;
    stats.own_segments += mapped->pool != nullptr;
    stats.descriptors += mapped->segment->descriptor() >= 0;
    stats.blocks += mapped->held;
    stats.address_space_bytes += static_cast<int64_t>(mapped->segment->size());
  }
  return stats;
}

}  // namespace taeda
