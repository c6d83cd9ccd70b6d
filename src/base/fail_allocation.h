// For tests: the n-th allocation fails.
//
// Counted are the memory of tensors, kernels' scratch included, and the blocks of storages, tensors
// and graph nodes, the latter on the thread that asks for the failure. The environment variable
// TAEDA_FAIL_ALLOCATION=n asks for it when the library is loaded. A count that is not running costs
// one load of a constant where memory is allocated, and nothing where blocks are.
#pragma once

#include <atomic>
#include <cstdint>

namespace taeda {

// The n-th allocation from now on fails, once; 0 switches it off. Returns how many have been
// counted since the call before, the one that failed included.
int64_t fail_allocation(int64_t n);
// How many allocations are left up to the one that fails, that one included; 0 when it has failed
// or none will.
int64_t allocations_before_failure();

namespace detail {
extern std::atomic<int64_t> allocations_left;
bool count_allocation();
}  // namespace detail

// Whether the allocation that is about to be made is the one that fails.
inline bool allocation_fails() {
  if (detail::allocations_left.load(std::memory_order_relaxed) <= 0) [[likely]]
    return false;
  return detail::count_allocation();
}

}  // namespace taeda
