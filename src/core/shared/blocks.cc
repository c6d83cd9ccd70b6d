#include "core/shared/blocks.h"

namespace taeda::shared {
namespace {

constexpr uint64_t kStateMask = 7;
constexpr uint64_t kOneMessage = 8;
constexpr uint64_t kMessageMask = ((uint64_t{1} << 21) - 1) * kOneMessage;
constexpr uint64_t kOneStep = uint64_t{1} << 24;  // of the sequence number

BlockState state_of(uint64_t word) { return static_cast<BlockState>(word & kStateMask); }
bool has_messages(uint64_t word) { return (word & kMessageMask) != 0; }

uint64_t with_state(uint64_t word, BlockState state) {
  return ((word & ~kStateMask) | static_cast<uint64_t>(state)) + kOneStep;
}

bool is_held(const BlockHeader& block) {
  for (const auto& holders : block.holders)
    if (holders.load() != 0) return true;
  return false;
}

uint64_t bit_of(int slot) { return uint64_t{1} << (slot % 64); }

}  // namespace

void hand_out(BlockHeader& block, int slot) {
  for (auto& holders : block.holders) holders.store(0);
  block.holders[static_cast<size_t>(slot / 64)].store(bit_of(slot));
  block.generation.fetch_add(1);
  set_state(block, BlockState::kUsed);
}

void add_holder(BlockHeader& block, int slot) {
  block.holders[static_cast<size_t>(slot / 64)].fetch_or(bit_of(slot));
  block.word.fetch_add(kOneStep);
}

void remove_holders(BlockHeader& block, const std::array<uint64_t, kHolderWords>& gone) {
  for (size_t i = 0; i < kHolderWords; i++)
    if (block.holders[i].load() & gone[i]) block.holders[i].fetch_and(~gone[i]);
}

void remove_holder(BlockHeader& block, int slot) {
  block.holders[static_cast<size_t>(slot / 64)].fetch_and(~bit_of(slot));
}

bool add_message(BlockHeader& block) {
  uint64_t word = block.word.load();
  do {
    if (state_of(word) != BlockState::kUsed || (word & kMessageMask) == kMessageMask) return false;
  } while (!block.word.compare_exchange_weak(word, word + kOneMessage + kOneStep));
  return true;
}

bool remove_message(BlockHeader& block, uint64_t generation) {
  uint64_t word = block.word.load();
  do {
    if (state_of(word) != BlockState::kUsed || !has_messages(word) ||
        block.generation.load() != generation)
      return false;
  } while (!block.word.compare_exchange_weak(word, word - kOneMessage + kOneStep));
  return true;
}

bool claim_unused(BlockHeader& block) {
  uint64_t word = block.word.load();
  do {
    if (state_of(word) != BlockState::kUsed || has_messages(word) || is_held(block)) return false;
  } while (!block.word.compare_exchange_weak(word, with_state(word, BlockState::kFreeing)));
  return true;
}

BlockState take_back(BlockHeader& block) {
  const BlockState state = state_of(block.word.load());
  if (state != BlockState::kFree && state != BlockState::kTrimmed) return BlockState::kUsed;
  set_state(block, BlockState::kPooled);
  return state;
}

void set_state(BlockHeader& block, BlockState state) {
  uint64_t word = block.word.load();
  while (!block.word.compare_exchange_weak(word, with_state(word, state))) {
  }
}

}  // namespace taeda::shared
