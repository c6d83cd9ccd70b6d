// check_interrupt(): where a long operator looks whether the program wants it to stop.
//
// parallel_for calls it between chunks; a kernel whose chunks may take longer than some
// milliseconds (a sum of 2^40 elements, one long sort) calls it between blocks of its own. It
// throws to end the operator: what the hook throws, on the thread that was interrupted, or
// Cancelled in the chunks of a parallel_for that has failed on another thread. Memory being written
// may then hold some of the new values.
//
// The hook runs on the calling thread, at most once in 100 ms; without one nothing is looked at. A
// call costs a few nanoseconds. It must not be made while a lock is held: the hook may run
// arbitrary code of the program and wait for other threads. Where that cannot be avoided,
// DeferInterrupts makes calls do nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace taeda {

// Returns when the operator may go on, or throws.
using InterruptHook = void (*)();
void set_interrupt_hook(InterruptHook hook);

void check_interrupt();
// The program has just looked for itself: the hook's next call on this thread is 100 ms away.
void postpone_interrupt_check();

// f(begin, end) for slices of the range 0 .. n in their order, looking between them: how a loop
// that is not cut by parallel_for stays interruptible.
template <class F>
void in_slices(int64_t n, const F& f) {
  constexpr int64_t kSlice = int64_t{1} << 18;
  for (int64_t begin = 0; begin < n; begin += kSlice) {
    if (begin > 0) check_interrupt();
    f(begin, begin + kSlice < n ? begin + kSlice : n);
  }
}

// The same for a loop whose steps differ: it says after each how many elements that was.
class Looks {
 public:
  void after(int64_t elements) {
    if ((since_ += elements) < kBetween) return;
    since_ = 0;
    check_interrupt();
  }

 private:
  static constexpr int64_t kBetween = int64_t{1} << 18;
  int64_t since_ = 0;
};

// Until the end of the scope check_interrupt() does nothing on this thread.
class DeferInterrupts {
 public:
  DeferInterrupts();
  ~DeferInterrupts();
  DeferInterrupts(const DeferInterrupts&) = delete;
  DeferInterrupts& operator=(const DeferInterrupts&) = delete;
};

// What check_interrupt() throws in a chunk whose parallel_for has failed; it never leaves that.
struct Cancelled {};

// Until the end of the scope check_interrupt() on this thread throws Cancelled once `flag` is set.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>* flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  const std::atomic<bool>* const saved_;
};

}  // namespace taeda
