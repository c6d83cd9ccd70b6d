#include "core/shared/in_place.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/fork.h"
#include "core/allocator.h"
#include "core/shared/write_barrier.h"

#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif

namespace taeda::shared {
namespace {

struct Shared {
  Hold hold;
  size_t bytes;
};

// Never destroyed: storages may be released while the process exits. Its mutex is never held when
// the table's is taken.
struct InPlace {
  InPlace() { protect_over_fork(mutex); }
  std::mutex mutex;
  std::unordered_map<const void*, Shared> shared;
  // Each block is mappings of its own, of which a process has 65,530 by default (vm.max_map_count).
  size_t most_blocks = 16384;
};
InPlace& in_place() {
  static InPlace& instance = *new InPlace;
  return instance;
}

size_t whole_pages(int64_t nbytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (static_cast<size_t>(nbytes) + page - 1) / page * page;
}

bool make_private(void* data, size_t bytes) {
  if (mmap(data, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED)
    return false;
  madvise(data, bytes, MADV_HUGEPAGE);
  return true;
}

// Before the allocator hands the block out again. One that stays shared is lost to it.
bool give_back(void* data) {
  Shared shared;
  {
    const std::lock_guard<std::mutex> lock(in_place().mutex);
    const auto found = in_place().shared.find(data);
    if (found == in_place().shared.end()) return true;
    shared = found->second;
    in_place().shared.erase(found);
  }
  const bool is_private = make_private(data, shared.bytes);
  SegmentTable& table = SegmentTable::instance();
  const std::lock_guard<std::mutex> lock(table.mutex());
  if (is_private) table.release(*shared.hold.mapped, shared.hold.block);
  return is_private;
}

bool replace_pages(void* data, size_t bytes, const Hold& hold) {
  const Segment& segment = *hold.mapped->segment;
  const uint64_t offset = segment.block(hold.block).offset;
  const WriteBarrier barrier(data, bytes);
  std::memcpy(segment.base() + offset, data, bytes);
  return mmap(data, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
              segment.descriptor(), static_cast<off_t>(offset)) != MAP_FAILED;
}

}  // namespace

bool can_share_in_place(const void* data, int64_t nbytes) {
  const size_t bytes = whole_pages(nbytes);
  return nbytes > 0 &&
         whole_pages(static_cast<int64_t>(reinterpret_cast<uintptr_t>(data))) ==
             reinterpret_cast<uintptr_t>(data) &&
         static_cast<size_t>(cpu_block_bytes(data)) >= bytes;
}

bool share_in_place(void* data, int64_t nbytes, const Hold& hold) {
  const size_t bytes = whole_pages(nbytes);
  const BlockHeader& block = hold.mapped->segment->block(hold.block);
  if (block.bytes < bytes || block.offset % whole_pages(1) != 0) return false;
  InPlace& all = in_place();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.shared.size() >= all.most_blocks) return false;
  const auto [entry, is_new] = all.shared.try_emplace(data, Shared{hold, bytes});
  if (is_new && replace_pages(data, bytes, hold)) {
    ask_before_release(give_back);
    return true;
  }
  if (is_new) all.shared.erase(entry);
  return false;
}

size_t set_most_in_place(size_t blocks) {
  const std::lock_guard<std::mutex> lock(in_place().mutex);
  return std::exchange(in_place().most_blocks, blocks);
}

std::optional<Hold> in_place_hold(const void* data) {
  InPlace& all = in_place();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.shared.find(data);
  if (found == all.shared.end()) return std::nullopt;
  return found->second.hold;
}

}  // namespace taeda::shared
