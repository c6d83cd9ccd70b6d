// SimMemory: memory of a simulated device, which the host may not touch.
//
// One memory file is mapped twice. The addresses that the program holds are in the first mapping,
// where every access by the host is a fault; copies and kernels work on the second one, at a fixed
// distance. Fresh memory is filled with 0xff (NaN), so that reading what nobody wrote shows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "device/sim/address_ranges.h"
#include "device/sim/virtual_memory.h"

namespace taeda::sim {

class SimMemory {
 public:
  explicit SimMemory(int64_t bytes);
  ~SimMemory();
  SimMemory(SimMemory&& other) noexcept;
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;

  // The first hole that is large enough; 0 when there is none.
  uintptr_t allocate(int64_t bytes);
  // Whether `address` began a block; its pages go back to the system.
  bool release(uintptr_t address);
  // The size of the block that begins at `address`; 0 for others.
  int64_t block_bytes(uintptr_t address) const;
  // Whether the whole range lies in one block, or is mapped.
  bool holds(uintptr_t begin, int64_t bytes) const;
  bool owns(uintptr_t address) const {
    return in_file(address) || (virtual_ && virtual_->owns(address));
  }
  // Where the bytes that the program calls `address` can be read and written.
  char* alias(uintptr_t address) const {
    return in_file(address) ? alias_ + (address - base_) : virtual_->alias(address);
  }

  // Addresses that memory is mapped behind: blocks of allocate() stand for the memory.
  VirtualMemory& addresses();
  // False where `block` is none, or the addresses are not free.
  bool map(uintptr_t address, int64_t bytes, uintptr_t block);

  // body(where its bytes can be read and written, how many) for each block.
  template <class Body>
  void for_each_block(const Body& body) const {
    for (const auto& [address, bytes] : blocks_) body(alias(address), bytes);
  }

  int64_t bytes() const { return bytes_; }
  int64_t bytes_free() const { return bytes_ - used_; }

 private:
  bool in_file(uintptr_t address) const {
    return address >= base_ && address < base_ + static_cast<uintptr_t>(bytes_);
  }

  int64_t bytes_ = 0, used_ = 0;
  int file_ = -1;
  uintptr_t base_ = 0;
  char* alias_ = nullptr;
  AddressRanges free_;
  std::map<uintptr_t, int64_t> blocks_;     // address -> bytes
  std::unique_ptr<VirtualMemory> virtual_;  // made when it is first asked for
};

}  // namespace taeda::sim
