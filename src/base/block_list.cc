#include "base/block_list.h"

#include <cstdlib>
#include <mutex>
#include <new>

#include "base/fail_allocation.h"
#include "base/fork.h"

namespace taeda::detail {

constinit thread_local LocalBlocks local_blocks[kNumBlockClasses];

namespace {

constexpr size_t kSlabBlocks = 64;

struct SharedBlocks {
  SharedBlocks() { protect_over_fork(mutex); }
  std::mutex mutex;
  FreeBlock* head[kNumBlockClasses] = {};
  int64_t made[kNumBlockClasses] = {};  // blocks ever cut from slabs
};

SharedBlocks& shared_blocks() {
  static SharedBlocks& instance = *new SharedBlocks;
  return instance;
}

// Moves blocks of the calling thread's list to the shared pool until `keep` are left.
void give_to_shared(int which, uint32_t keep) {
  LocalBlocks& local = local_blocks[which];
  if (local.count <= keep) return;
  FreeBlock* first = local.head;
  FreeBlock* last = first;
  while (--local.count > keep) last = last->next;
  local.head = last->next;
  SharedBlocks& shared = shared_blocks();
  std::lock_guard<std::mutex> lock(shared.mutex);
  last->next = shared.head[which];
  shared.head[which] = first;
}

// Hands the lists back when the thread ends. Blocks that come back later on this thread (from
// destructors that run after this one) go to the shared pool one by one: `registered` is false
// again.
struct ThreadEnd {
  ~ThreadEnd() {
    for (int which = 0; which < kNumBlockClasses; which++) {
      give_to_shared(which, 0);
      local_blocks[which].registered = false;
    }
    ended = true;
  }
  void touch() {}
  static constinit thread_local bool ended;
};
constinit thread_local bool ThreadEnd::ended = false;
thread_local ThreadEnd thread_end;

void register_thread(LocalBlocks& local) {
  if (local.registered || ThreadEnd::ended || allocations_before_failure() > 0) return;
  thread_end.touch();
  local.registered = true;
}

// A slab of new blocks for the calling thread's list.
void cut_slab(int which, size_t bytes) {
  LocalBlocks& local = local_blocks[which];
  char* slab = static_cast<char*>(std::aligned_alloc(64, kSlabBlocks * bytes));
  if (!slab) throw std::bad_alloc();
  for (size_t i = kSlabBlocks; i-- > 0;) {
    auto* block = reinterpret_cast<FreeBlock*>(slab + i * bytes);
    block->next = local.head;
    local.head = block;
  }
  local.count = kSlabBlocks;
  SharedBlocks& shared = shared_blocks();
  std::lock_guard<std::mutex> lock(shared.mutex);
  shared.made[which] += kSlabBlocks;
}

}  // namespace

void* take_block_slow(BlockClass which_class, size_t bytes) {
  if (allocation_fails()) throw std::bad_alloc();
  if constexpr (!kPoolBlocks) {
    void* memory = std::aligned_alloc(64, bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
  }
  const int which = static_cast<int>(which_class);
  LocalBlocks& local = local_blocks[which];
  register_thread(local);
  {
    SharedBlocks& shared = shared_blocks();
    std::lock_guard<std::mutex> lock(shared.mutex);
    for (size_t i = 0; i < kSlabBlocks && shared.head[which]; i++) {
      FreeBlock* block = shared.head[which];
      shared.head[which] = block->next;
      block->next = local.head;
      local.head = block;
      local.count++;
    }
  }
  if (!local.head) cut_slab(which, bytes);
  FreeBlock* block = local.head;
  local.head = block->next;
  local.count--;
  if (!local.registered) give_to_shared(which, 0);
  return block;
}

void trim_blocks(BlockClass which_class) {
  const int which = static_cast<int>(which_class);
  LocalBlocks& local = local_blocks[which];
  register_thread(local);
  if (!local.registered)
    give_to_shared(which, 0);
  else if (local.count >= kMaxLocalBlocks)
    give_to_shared(which, kMaxLocalBlocks / 2);
}

void bypass_local_blocks() {
  for (int which = 0; which < kNumBlockClasses; which++) {
    give_to_shared(which, 0);
    local_blocks[which].registered = false;
  }
}

}  // namespace taeda::detail

namespace taeda {

int64_t blocks_in_use(detail::BlockClass which_class) {
  const int which = static_cast<int>(which_class);
  detail::SharedBlocks& shared = detail::shared_blocks();
  std::lock_guard<std::mutex> lock(shared.mutex);
  int64_t used = shared.made[which] - detail::local_blocks[which].count;
  for (const detail::FreeBlock* block = shared.head[which]; block; block = block->next) used--;
  return used;
}

}  // namespace taeda
