// BlockList<kBytes>: fixed-size memory blocks from thread-local free lists, for objects made and
// dropped by every operator call (TensorImpl, Storage).
//
// Taking and giving back are a few instructions without a lock. Blocks are 64-byte aligned and cut
// from slabs that return to no one: a list that grows too long, and the lists of threads that end,
// feed a shared pool. Usable at any moment: while thread-local objects are being destroyed, and
// during static destruction.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taeda {
namespace detail {

struct FreeBlock {
  FreeBlock* next;
};

// Trivially destructible, so that it outlives every thread-local object with a destructor.
struct LocalBlocks {
  FreeBlock* head = nullptr;
  uint32_t count = 0;
  bool registered = false;  // a destructor of this thread will hand the list back
};

// Half of an over-long list moves to the shared pool.
inline constexpr uint32_t kMaxLocalBlocks = 512;

enum class BlockClass : uint8_t { kStorage, kTensor, kAutogradMeta, kSmallNode, kLargeNode };
inline constexpr int kNumBlockClasses = 5;

extern constinit thread_local LocalBlocks local_blocks[kNumBlockClasses]
    __attribute__((tls_model("initial-exec")));

void* take_block_slow(BlockClass which, size_t bytes);
void trim_blocks(BlockClass which);
// Hands the calling thread's lists back. While an allocation failure is awaited it gets no others:
// every block is taken, and counted, one by one.
void bypass_local_blocks();

}  // namespace detail

// How many blocks of a class are out, those in other threads' lists included; 0 where blocks are
// not pooled.
int64_t blocks_in_use(detail::BlockClass which);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPoolBlocks = false;  // the sanitizer sees every block
#else
inline constexpr bool kPoolBlocks = true;
#endif

template <detail::BlockClass kWhich, size_t kBytes>
struct BlockList {
  static_assert(kBytes % 64 == 0);

  static void* take() {
    detail::LocalBlocks& local = detail::local_blocks[static_cast<int>(kWhich)];
    if (detail::FreeBlock* block = local.head) [[likely]] {
      local.head = block->next;
      local.count--;
      return block;
    }
    return detail::take_block_slow(kWhich, kBytes);
  }

  static void give(void* memory) {
    if constexpr (!kPoolBlocks) return __builtin_free(memory);
    detail::LocalBlocks& local = detail::local_blocks[static_cast<int>(kWhich)];
    auto* block = static_cast<detail::FreeBlock*>(memory);
    block->next = local.head;
    local.head = block;
    if (++local.count >= detail::kMaxLocalBlocks || !local.registered) [[unlikely]]
      detail::trim_blocks(kWhich);
  }
};

}  // namespace taeda
