// AddressRanges: parts of a range of addresses, handed out first fit, joined again when they come
// back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace taeda::sim {

class AddressRanges {
 public:
  AddressRanges() = default;
  AddressRanges(uintptr_t begin, int64_t bytes) : holes_{{begin, bytes}} {}

  // The first hole that is large enough; 0 when there is none.
  uintptr_t take(int64_t bytes) {
    const auto hole = std::find_if(holes_.begin(), holes_.end(),
                                   [&](const auto& entry) { return entry.second >= bytes; });
    if (hole == holes_.end()) return 0;
    const auto [address, length] = *hole;
    holes_.erase(hole);
    if (length > bytes) holes_[address + static_cast<uintptr_t>(bytes)] = length - bytes;
    return address;
  }
  void give(uintptr_t address, int64_t bytes) {
    auto hole = holes_.emplace(address, bytes).first;
    if (const auto next = std::next(hole); next != holes_.end() && end(hole) == next->first) {
      hole->second += next->second;
      holes_.erase(next);
    }
    if (hole == holes_.begin()) return;
    const auto previous = std::prev(hole);
    if (end(previous) != hole->first) return;
    previous->second += hole->second;
    holes_.erase(hole);
  }

 private:
  using Holes = std::map<uintptr_t, int64_t>;  // address -> bytes
  static uintptr_t end(Holes::const_iterator hole) {
    return hole->first + static_cast<uintptr_t>(hole->second);
  }
  Holes holes_;
};

}  // namespace taeda::sim
