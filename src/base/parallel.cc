#include "base/parallel.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "base/block_signals.h"
#include "base/contention.h"
#include "base/cpus.h"
#include "base/fork.h"
#include "base/interrupt.h"
#include "taeda/error.h"

namespace taeda {
namespace {

// Regions that can be open at once; a caller that finds no slot runs its chunks alone.
constexpr int kSlots = 8;
constexpr int kMaxRanges = 64;
constexpr int kMaxHooks = 16;
// All times are in nanoseconds.
// How long an idle worker looks for work before it sleeps: longer than the gap between two
// operators of a training step, short enough that an idle process burns nothing.
constexpr int64_t kSpin = 50'000;
// What a job must take on one thread for a worker to be of use: one that looks for work begins
// after 1 us; waking one costs the caller 4 to 12 us, and it begins after 20.
constexpr int64_t kWorthSharing = 5'000, kWorthWaking = 30'000;

thread_local bool in_region = false;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

using contention::now;

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// One parallel_for, on its caller's stack. Each participant begins with a range of chunks of its
// own, so that successive operators on the same tensor find their part in the same core's cache,
// then helps with the others'.
class Job {
 public:
  Job(int64_t begin, int64_t end, int64_t chunk, detail::ChunkFn fn, const void* context,
      int threads)
      : begin_(begin), end_(end), chunk_(chunk), fn_(fn), context_(context) {
    chunks_ = (end - begin + chunk - 1) / chunk;
    ranges_ = static_cast<int>(std::min<int64_t>({chunks_, threads, kMaxRanges}));
    for (int r = 0; r < ranges_; r++) {
      range_[r].next.store(chunks_ * r / ranges_, std::memory_order_relaxed);
      range_[r].end = chunks_ * (r + 1) / ranges_;
    }
    max_workers_ = static_cast<int>(std::min<int64_t>(chunks_, threads)) - 1;
  }

  int64_t chunks() const { return chunks_; }
  int max_workers() const { return max_workers_; }
  // Whether one more worker may take part.
  bool join() { return joined_.fetch_add(1, std::memory_order_relaxed) < max_workers_; }

  // Participant 0 is the caller. The number of chunks that this one ran.
  int64_t work(int participant) {
    const CancelScope scope(&failed_);
    int64_t done = 0;
    for (int i = 0; i < ranges_; i++) {
      Range& range = range_[(participant + i) % ranges_];
      if (range.next.load(std::memory_order_relaxed) >= range.end) continue;
      for (int64_t c; (c = range.next.fetch_add(1, std::memory_order_relaxed)) < range.end;) {
        if (failed_.load(std::memory_order_relaxed)) return done;
        run(c);
        done++;
      }
    }
    return done;
  }

  // While the caller waits for the workers.
  void look_for_interrupt() {
    try {
      check_interrupt();
    } catch (...) {
      fail();
    }
  }

  void rethrow() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void run(int64_t c) {
    const int64_t from = begin_ + c * chunk_;
    try {
      check_interrupt();
      fn_(context_, from, std::min(end_, from + chunk_));
    } catch (...) {
      fail();
    }
  }

  // The exception being handled becomes the job's, if it is the first.
  void fail() {
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }

  struct alignas(64) Range {
    std::atomic<int64_t> next;
    int64_t end;
  };

  const int64_t begin_, end_, chunk_;
  const detail::ChunkFn fn_;
  const void* const context_;
  int64_t chunks_;
  int ranges_, max_workers_;
  std::atomic<int> joined_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  Range range_[kMaxRanges];
};

// Where a caller shows its job to the workers. A worker counts itself in before it looks at `job`,
// and the caller waits for the count to reach zero after it has taken the job down, so no worker
// touches a job that has ended.
struct alignas(64) Slot {
  std::atomic<bool> taken{false};
  std::atomic<Job*> job{nullptr};
  std::atomic<int> visitors{0};
};

struct Hooks {
  std::atomic<int> count{0};
  void (*hook[kMaxHooks])() = {};
};
Hooks hooks;

// Sets a thread-local flag while chunks run.
class RegionScope {
 public:
  RegionScope() : saved_(in_region) { in_region = true; }
  ~RegionScope() { in_region = saved_; }

 private:
  bool saved_;
};

class Pool {
 public:
  void run(Job& job, detail::ChunkTime& time) {
    Slot* const slot = worth_sharing(job, time) ? take_slot() : nullptr;
    if (slot) publish(*slot, job);
    const int64_t begin = now(), done = job.work(0), end = now();
    const int64_t one = done > 0 ? (end - begin) / done : 0;
    if (done > 0) time.learn(one);
    if (slot && wait_for_visitors(*slot, job) && policy_.backoff)
      backoff_.note_wait(now() - end, (job.chunks() - done) * one);
  }

 private:
  // Whether workers are likely to make the job end earlier.
  bool worth_sharing(const Job& job, const detail::ChunkTime& time) {
    if (workers_.load(std::memory_order_acquire) < job.max_workers()) grow(job.max_workers());
    const int workers = workers_.load(std::memory_order_relaxed);
    if (workers == 0) return false;
    const int64_t expected = time.of(job.chunks());
    const bool all_sleep = sleepers_.load(std::memory_order_relaxed) == workers;
    if (expected > 0 && expected < (all_sleep ? kWorthWaking : kWorthSharing)) return false;
    return !backoff_.active();
  }

  void publish(Slot& slot, Job& job) {
    if (policy_.migrate) caller_cpu_.store(sched_getcpu(), std::memory_order_relaxed);
    // Sequentially consistent, as all that pairs with a worker's count or sleep.
    slot.job.store(&job);
    epoch_.fetch_add(1);
    if (sleepers_.load() > 0) futex_wake(epoch_, job.max_workers());
  }

  // Takes the job down. Whether it took long until no worker was at it.
  bool wait_for_visitors(Slot& slot, Job& job) {
    slot.job.store(nullptr);
    int spins = 0;
    for (; slot.visitors.load() > 0; spins++) {
      if (spins < 2000) {
        pause_cpu();
      } else {
        sched_yield();
        job.look_for_interrupt();
      }
    }
    slot.taken.store(false, std::memory_order_release);
    return spins > 2000;
  }

  Slot* take_slot() {
    for (Slot& slot : slots_) {
      if (!slot.taken.load(std::memory_order_relaxed) &&
          !slot.taken.exchange(true, std::memory_order_acquire))
        return &slot;
    }
    return nullptr;
  }

  void grow(int workers) {
    std::lock_guard<std::mutex> lock(grow_mutex_);
    // Signals are for the program's own threads: a handler (Python's for Ctrl-C) must not run on a
    // worker.
    const BlockSignals for_workers;
    for (int index = workers_.load(); index < workers; index++) {
      try {
        std::thread([this, index] { live(index); }).detach();
      } catch (const std::system_error&) {
        break;  // no more threads to be had: fewer workers do the same work
      }
      workers_.store(index + 1, std::memory_order_release);
    }
  }

  // What a worker knows of itself.
  struct Worker {
    int index;
    int hooks_run = 0;
    contention::PreemptionCount preemptions{};
  };

  // Worker threads are never joined: they sleep until the process ends.
  [[noreturn]] void live(int index) {
    in_region = true;
    Worker worker{index};
    while (true) {
      const uint32_t seen = epoch_.load();
      if (beside_caller() && has_jobs()) migrate(worker);
      for (Slot& slot : slots_) visit(slot, worker);
      wait_for_work(seen, worker);
    }
  }

  bool beside_caller() const {
    return policy_.migrate && sched_getcpu() == caller_cpu_.load(std::memory_order_relaxed);
  }
  bool has_jobs() const {
    return std::any_of(std::begin(slots_), std::end(slots_), [](const Slot& slot) {
      return slot.job.load(std::memory_order_relaxed) != nullptr;
    });
  }

  void visit(Slot& slot, Worker& worker) {
    if (!slot.job.load(std::memory_order_relaxed)) return;
    slot.visitors.fetch_add(1);
    // Whoever wakes may join: a wake-up reaches any of the sleepers, not those with low indices.
    if (Job* job = slot.job.load(); job && job->join()) {
      for (; worker.hooks_run < hooks.count.load(std::memory_order_acquire); worker.hooks_run++)
        hooks.hook[worker.hooks_run]();
      const int64_t begin = now();
      job->work(worker.index + 1);
      const bool stalled = policy_.backoff && now() - begin > contention::Backoff::kStall;
      if (stalled && worker.preemptions.grew()) backoff_.note_preemption();
    }
    slot.visitors.fetch_sub(1);
  }

  // A worker on its caller's core only interrupts it.
  void migrate(Worker& worker) {
    contention::leave_core(sched_getcpu());
    if (policy_.backoff) worker.preemptions.grew();  // moving counts as one
  }

  void wait_for_work(uint32_t seen, Worker& worker) {
    if (beside_caller()) migrate(worker);
    if (!beside_caller()) {
      const int64_t deadline = now() + kSpin;
      do {
        for (int i = 0; i < 64; i++) {
          if (epoch_.load(std::memory_order_relaxed) != seen) return;
          pause_cpu();
        }
      } while (now() < deadline);
    }
    if (policy_.backoff) worker.preemptions.grew();  // what happens outside of jobs does not count
    sleepers_.fetch_add(1);
    while (epoch_.load() == seen) futex_wait(epoch_, seen);
    sleepers_.fetch_sub(1);
  }

  Slot slots_[kSlots];
  alignas(64) std::atomic<uint32_t> epoch_{0};  // counts published jobs
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> workers_{0};
  std::atomic<int> caller_cpu_{-1};  // of the last job
  const contention::Policy policy_ = contention::policy();
  contention::Backoff backoff_;
  std::mutex grow_mutex_;
};

// The process's pool. A forked child has none of its parent's threads: it forgets the pool (whose
// memory other regions of the parent may still be using at the moment of the fork) and makes a new
// one when it first needs it.
std::atomic<Pool*> the_pool{nullptr};
std::atomic<int> thread_setting{0};

Pool& make_pool() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr); }); });
  Pool* fresh = new Pool;
  Pool* none = nullptr;
  if (the_pool.compare_exchange_strong(none, fresh)) return *fresh;
  delete fresh;
  return *none;
}

Pool& pool() {
  Pool* existing = the_pool.load(std::memory_order_acquire);
  return existing ? *existing : make_pool();
}

int default_threads() {
  for (const char* name : {"TAEDA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    if (const char* text = std::getenv(name)) {
      const int threads = std::atoi(text);
      if (threads > 0) return std::min(threads, 4096);
    }
  }
  return available_cpus();
}

}  // namespace

int get_num_threads() {
  int threads = thread_setting.load(std::memory_order_relaxed);
  if (threads == 0) {
    int unset = 0;
    threads = default_threads();
    if (!thread_setting.compare_exchange_strong(unset, threads)) threads = unset;
  }
  return threads;
}

void set_num_threads(int threads) {
  TD_CHECK(threads > 0, "set_num_threads: expected a positive number of threads, got {}", threads);
  thread_setting.store(std::min(threads, 4096));
}

bool in_parallel_region() { return in_region; }

void add_worker_start_hook(void (*hook)()) {
  static std::mutex& mutex = *new std::mutex;
  std::lock_guard<std::mutex> lock(mutex);
  const int count = hooks.count.load();
  TD_CHECK(count < kMaxHooks, "add_worker_start_hook: at most {} hooks", kMaxHooks);
  hooks.hook[count] = hook;
  hooks.count.store(count + 1, std::memory_order_release);
}

void detail::run_chunks(int64_t begin, int64_t end, int64_t chunk, ChunkFn fn, const void* context,
                        ChunkTime& time) {
  const int threads = in_region ? 1 : get_num_threads();
  if (threads > 1) {
    Job job(begin, end, chunk, fn, context, threads);
    {
      RegionScope scope;
      pool().run(job, time);
    }
    return job.rethrow();
  }
  for (int64_t at = begin; at < end; at += chunk) {
    check_interrupt();
    fn(context, at, std::min(end, at + chunk));
  }
}

}  // namespace taeda
