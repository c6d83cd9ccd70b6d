#include "base/fail_allocation.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "base/block_list.h"

namespace taeda {
namespace {

int64_t asked_for() {
  const char* const text = std::getenv("TAEDA_FAIL_ALLOCATION");
  if (!text || !*text) return 0;
  const std::string_view digits = text;
  int64_t n = 0;
  const auto [stop, error] = std::from_chars(text, text + digits.size(), n);
  if (error == std::errc() && stop == text + digits.size() && n >= 0) return n;
  std::fprintf(stderr, "taeda: TAEDA_FAIL_ALLOCATION=%s ignored: expected a number from 0 on\n",
               text);
  return 0;
}

const int64_t from_environment = asked_for();
std::atomic<int64_t> armed{from_environment};  // the distance when the count began

}  // namespace

namespace detail {

std::atomic<int64_t> allocations_left{from_environment};

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
