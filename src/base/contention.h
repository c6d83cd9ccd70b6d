// contention: what the thread pool does where other processes, or its own threads, want the same
// core. Both are choices of the environment variable TAEDA_CONTENTION: `migrate`, `backoff`, `both`
// or `none`; docs/notes/threads.md says what each is worth and which is the default.
//
//   migrate  a worker that finds itself on its caller's core moves to another one
//   backoff  a caller that loses more by waiting for a preempted worker than the worker's chunks
//            are worth runs alone for a while
#pragma once

#include <atomic>
#include <cstdint>

namespace taeda::contention {

struct Policy {
  bool migrate = false, backoff = false;
};
// The environment's choice, read once. ValueError for a word that is none.
const Policy& policy();

// Moves the calling thread to another of the cores that it may use, if there is one.
void leave_core(int cpu);

// Counts how often the calling thread's core was taken away by another thread or process.
class PreemptionCount {
 public:
  // Whether it was since the last call.
  bool grew();

 private:
  int64_t seen_ = 0;
};

// Nanoseconds of a clock that only goes forward.
int64_t now();

// When callers share their work, and when they run alone because sharing lost time.
class Backoff {
 public:
  // Whether a caller is to run alone now.
  bool active();
  // A worker lost its core in the middle of a job.
  void note_preemption() { preempted_.store(true); }
  // A caller waited so long for workers whose chunks it would have run in `worth`.
  void note_wait(int64_t waited, int64_t worth);

  // Waits below this are the price of sharing work, not a loss.
  static constexpr int64_t kStall = 200'000;

 private:
  // It runs alone for kFactor times what it lost.
  static constexpr int64_t kFactor = 2, kLongest = 50'000'000;

  std::atomic<bool> preempted_{false};
  std::atomic<int64_t> until_{0};  // 0: inactive
};

}  // namespace taeda::contention
