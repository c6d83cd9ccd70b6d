#include "base/fail_allocation.h"

#include <algorithm>
#include <cstdlib>

#include "base/block_list.h"

namespace taeda {
namespace {

int64_t asked_for() {
  const char* text = std::getenv("TAEDA_FAIL_ALLOCATION");
  return text ? std::max<int64_t>(0, std::strtoll(text, nullptr, 10)) : 0;
}

std::atomic<int64_t> armed{asked_for()};  // the distance when the count began

}  // namespace

namespace detail {

std::atomic<int64_t> allocations_left{asked_for()};

bool count_allocation() { return allocations_left.fetch_sub(1) == 1; }

}  // namespace detail

int64_t allocations_before_failure() {
  return std::max<int64_t>(0, detail::allocations_left.load());
}

int64_t fail_allocation(int64_t n) {
  const int64_t counted = armed.load() - allocations_before_failure();
  detail::allocations_left.store(std::max<int64_t>(0, n));
  armed.store(std::max<int64_t>(0, n));
  if (n > 0) detail::bypass_local_blocks();
  return counted;
}

}  // namespace taeda
