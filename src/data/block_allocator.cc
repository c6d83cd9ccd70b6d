#include "data/block_allocator.h"

#include <bit>

namespace taeda::data {
namespace {

constexpr size_t kIdleBytes = size_t{1} << 26;  // that may lie free besides as much as is held

// The size of blocks for n bytes: 4, 5, 6 or 7 times a power of two.
size_t block_size(size_t n) {
  const size_t step = std::max<size_t>(64, std::bit_floor(n) / 4);
  return (n + step - 1) / step * step;
}

}  // namespace

BlockAllocator::BlockAllocator(SharedArea& area, size_t begin, size_t end)
    : area_(area), top_(begin), end_(end), reserved_{begin, 0} {
  const size_t size = sizeof(Block) + kReserved;
  area_.commit(begin, size);
  reserved_.committed = size;
  top_ += size;
  auto* const block = new (at(reserved_)) Block;
  block->holders = 0;
  block->bytes = kReserved;
}

Block* BlockAllocator::at(const Known& known) const {
  return reinterpret_cast<Block*>(area_.data() + known.offset);
}

Block* BlockAllocator::use(Known& known, size_t needed) {
  if (known.committed < needed) {
    if (!area_.commit(known.offset, needed)) return nullptr;
    known.committed = needed;
  }
  Block* const block = at(known);
  block->holders.store(1, std::memory_order_relaxed);
  block->sent = false;
  return block;
}

Block* BlockAllocator::grow(size_t size, size_t needed) {
  if (end_ - top_ < size) return nullptr;
  if (size >= kIdleBytes / 64) trim();
  if (!area_.commit(top_, needed)) return nullptr;
  auto* const block = new (area_.data() + top_) Block;
  block->holders.store(1, std::memory_order_relaxed);
  block->sent = false;
  block->bytes = size - sizeof(Block);
  by_size_[size].push_back({top_, needed});
  top_ += size;
  return block;
}

Block* BlockAllocator::allocate(size_t bytes) {
  if (bytes >= end_) return nullptr;
  const size_t needed = bytes + sizeof(Block), size = block_size(needed);
  for (Known& known : by_size_[size])
    if (at(known)->holders.load(std::memory_order_acquire) == 0) return use(known, needed);
  if (Block* block = grow(size, needed)) return block;
  if (bytes <= kReserved && at(reserved_)->holders.load(std::memory_order_acquire) == 0)
    return use(reserved_, needed);
  return nullptr;
}

// Gives the memory of free blocks back where much of it is idle. Their headers stay.
void BlockAllocator::trim() {
  size_t idle = 0, used = 0;
  for (auto& [size, blocks] : by_size_)
    for (const Known& known : blocks)
      (at(known)->holders.load(std::memory_order_acquire) == 0 ? idle : used) += known.committed;
  if (idle < used + kIdleBytes) return;
  for (auto& [size, blocks] : by_size_) {
    for (Known& known : blocks) {
      if (at(known)->holders.load(std::memory_order_acquire) != 0) continue;
      area_.decommit(known.offset + sizeof(Block), known.committed - sizeof(Block));
      known.committed = sizeof(Block);
    }
  }
}

}  // namespace taeda::data
