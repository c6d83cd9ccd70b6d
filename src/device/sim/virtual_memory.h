// VirtualMemory: addresses of a simulated device that memory is mapped behind later
// (cuMemAddressReserve, cuMemMap). As with SimMemory, the host cannot touch what the program sees;
// the second mapping lies at a fixed distance.
#pragma once

#include <cstdint>
#include <map>

#include "device/sim/address_ranges.h"

namespace taeda::sim {

class VirtualMemory {
 public:
  VirtualMemory();
  ~VirtualMemory();
  VirtualMemory(const VirtualMemory&) = delete;

  uintptr_t reserve(int64_t bytes);  // 0 when there are no addresses left
  // False unless the range was reserved as one and nothing is mapped in it.
  bool unreserve(uintptr_t address, int64_t bytes);
  // Puts a part of a memory file behind reserved addresses; false where some are in use or not
  // reserved. It can be used after allow().
  bool map(uintptr_t address, int64_t bytes, int file, int64_t offset);
  bool allow(uintptr_t address, int64_t bytes);
  // False unless the range consists of whole mappings.
  bool unmap(uintptr_t address, int64_t bytes);

  bool owns(uintptr_t address) const {
    return address >= base_ && address < base_ + static_cast<uintptr_t>(kBytes);
  }
  // Whether the whole range is mapped and may be used.
  bool holds(uintptr_t begin, int64_t bytes) const;
  char* alias(uintptr_t address) const { return alias_ + (address - base_); }

 private:
  static constexpr int64_t kBytes = int64_t{1} << 40;
  struct Mapping {
    int64_t bytes;
    bool allowed;
  };
  using Mappings = std::map<uintptr_t, Mapping>;
  // Calls `use` with each mapping of the range; false where there are gaps or parts.
  template <class F>
  bool for_each(uintptr_t address, int64_t bytes, F use);

  uintptr_t base_;
  char* alias_;
  AddressRanges free_;
  std::map<uintptr_t, int64_t> reserved_;
  Mappings mappings_;
};

}  // namespace taeda::sim
