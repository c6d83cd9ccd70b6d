#include "base/contention.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "taeda/error.h"

namespace taeda::contention {
namespace {

Policy read_policy() {
  const char* const text = std::getenv("TAEDA_CONTENTION");
  const std::string_view word = text ? text : "migrate";
  TD_CHECK_VALUE(word == "none" || word == "migrate" || word == "backoff" || word == "both",
                 "TAEDA_CONTENTION: expected none, migrate, backoff or both, got {}", word);
  return {word == "migrate" || word == "both", word == "backoff" || word == "both"};
}

int64_t times_preempted() {
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace

const Policy& policy() {
  static const Policy chosen = read_policy();
  return chosen;
}

// A system that takes a halted virtual CPU for one in use wakes threads where they last ran, be it
// busy or not, and moves short ones never.
void leave_core(int cpu) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
  cpu_set_t others = all;
  CPU_CLR(static_cast<size_t>(cpu), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(all), &all);
}

bool PreemptionCount::grew() {
  const int64_t before = seen_;
  seen_ = times_preempted();
  return seen_ > before;
}

int64_t now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

bool Backoff::active() {
  const int64_t until = until_.load(std::memory_order_relaxed);
  if (until == 0) return false;
  if (now() < until) return true;
  until_.store(0, std::memory_order_relaxed);
  return false;
}

void Backoff::note_wait(int64_t waited, int64_t worth) {
  const int64_t lost = waited - worth;
  if (waited > kStall && lost > 0 && preempted_.exchange(false))
    until_.store(now() + std::min(kFactor * lost, kLongest));
}

}  // namespace taeda::contention
