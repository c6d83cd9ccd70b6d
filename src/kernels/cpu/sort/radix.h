// Radix sort of 64-bit numbers by a range of their bits, in parallel; those that agree there keep
// their order. The result does not depend on the number of threads.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// Sorts x by the bits [low, low + count); scratch has room for n numbers. Returns where the sorted
// numbers are: x or scratch.
uint64_t* radix_sort_bits(uint64_t* x, uint64_t* scratch, int64_t n, unsigned low, unsigned count);

}  // namespace taeda::cpu
