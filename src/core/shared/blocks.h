// What a segment of shared memory holds besides tensors: a header of the segment and one of each
// block, which say who uses the block. All processes that map the segment read and write them at
// once, without locks: a process may be killed between any two instructions, and what it leaves
// must be safe for the others. Losing a block until the segment goes is; handing out memory that
// somebody still uses is not.
//
// A process that has storages on a block sets its bit in `holders`; how many it has it counts by
// itself. A message that names the block counts in `word` until it is received. Whoever clears the
// last bit while no message is under way frees the block; the segment's creator, which alone
// allocates from it, finds it by its state.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taeda::shared {

constexpr int kMostProcesses = 256;
constexpr size_t kHolderWords = kMostProcesses / 64;

// kPooled blocks are the creator's to hand out. The others came back with their pages (kFree), or
// without (kTrimmed); kFreeing is one whose pages are being given to the system.
enum class BlockState : uint64_t { kPooled, kUsed, kFreeing, kFree, kTrimmed };

struct BlockHeader {
  // From the lowest bit on: 3 bits of BlockState, 21 of messages in flight, and a sequence number
  // that every change advances. Whoever adds a holder advances it after setting the bit, so that
  // nobody frees the block who looked at the holders one by one meanwhile.
  std::atomic<uint64_t> word;
  std::atomic<uint64_t> generation;  // how often the block was handed out
  uint64_t offset, bytes;            // of the memory, from the segment's start
  std::array<std::atomic<uint64_t>, kHolderWords> holders;
};
static_assert(sizeof(BlockHeader) == 64 && std::atomic<uint64_t>::is_always_lock_free);

// Hands a pooled block out to the process in `slot`.
void hand_out(BlockHeader& block, int slot);
void add_holder(BlockHeader& block, int slot);
// Without the bits of `gone`; then free_unused().
void remove_holders(BlockHeader& block, const std::array<uint64_t, kHolderWords>& gone);
void remove_holder(BlockHeader& block, int slot);

// One message more, by a process that holds the block; false where there are too many.
bool add_message(BlockHeader& block);
// One message less: false where none of this generation is under way.
bool remove_message(BlockHeader& block, uint64_t generation);
// The same, after the receiver has set its bit: the message's hold becomes its own.
inline bool receive_message(BlockHeader& block, uint64_t generation) {
  return remove_message(block, generation);
}

// Takes a used block that nobody holds and no message names to kFreeing; true for the one caller
// that did.
bool claim_unused(BlockHeader& block);
// The creator takes back what is kFree or kTrimmed; the state that it was in, else kUsed.
BlockState take_back(BlockHeader& block);
void set_state(BlockHeader& block, BlockState state);

}  // namespace taeda::shared
