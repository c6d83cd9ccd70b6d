#include "base/interrupt.h"

#include <time.h>

#include <cstdint>

namespace taeda {
namespace {

constexpr int64_t kInterval = 100'000'000;  // nanoseconds

std::atomic<InterruptHook> the_hook{nullptr};

struct ThreadState {
  int64_t next_call = 0;
  int deferred = 0;
  const std::atomic<bool>* cancelled = nullptr;
};
constinit thread_local ThreadState state __attribute__((tls_model("initial-exec")));

// Some milliseconds coarse, but a third of the exact clock's price.
int64_t coarse_now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

void set_interrupt_hook(InterruptHook hook) { the_hook.store(hook); }

void check_interrupt() {
  ThreadState& mine = state;
  if (mine.deferred > 0) return;
  if (mine.cancelled && mine.cancelled->load(std::memory_order_relaxed)) throw Cancelled();
  const InterruptHook hook = the_hook.load(std::memory_order_relaxed);
  if (!hook) return;
  const int64_t now = coarse_now();
  if (now < mine.next_call) return;
  mine.next_call = now + kInterval;
  // The operators that the hook calls are not part of what may have been cancelled.
  const CancelScope apart(nullptr);
  hook();
}

void postpone_interrupt_check() { state.next_call = coarse_now() + kInterval; }

DeferInterrupts::DeferInterrupts() { state.deferred++; }
DeferInterrupts::~DeferInterrupts() { state.deferred--; }

CancelScope::CancelScope(const std::atomic<bool>* flag) : saved_(state.cancelled) {
  state.cancelled = flag;
}
CancelScope::~CancelScope() { state.cancelled = saved_; }

}  // namespace taeda
