// parallel_for: the only door to threads inside taeda.
//
//   parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) { ... });
//
// The range is cut into chunks whose boundaries depend on its length and on `grain` alone, never on
// the number of threads, so that a kernel which reduces chunk by chunk gives the same bits on every
// machine. Chunks are multiples of `grain` (except the last) and run in any order on the calling
// thread and the pool's workers. A range of at most `grain` is one chunk and runs inline. Nested
// calls run inline on their worker. The first exception that a chunk throws is rethrown in the
// caller once all running chunks have ended; chunks not yet begun are skipped. Between chunks the
// caller looks whether the program wants the operator to stop (base/interrupt.h).
//
// May be called from several threads at once, and in a forked child (which builds its own workers
// when it needs them). An empty region costs well under a microsecond while the workers are awake:
// they spin briefly before they sleep. Each call remembers how long its chunks took, and runs alone
// what would be done before a worker could help: chunks must not wait for each other.
#pragma once

#include <atomic>
#include <cstdint>

namespace taeda {

// At most this many chunks: enough to balance 100 threads, few enough that claiming them costs
// nothing.
inline constexpr int64_t kMaxChunks = 1024;

// The length of every chunk but the last.
inline int64_t chunk_length(int64_t n, int64_t grain) {
  if (grain < 1) grain = 1;
  const int64_t chunks_of_grain = (n + grain - 1) / grain;
  const int64_t grains_a_chunk = (chunks_of_grain + kMaxChunks - 1) / kMaxChunks;
  return grains_a_chunk * grain;
}

// Threads that take part in a region, the caller included. The default is what the affinity mask
// and the cgroup's CPU quota allow, or the environment variables TAEDA_NUM_THREADS or
// OMP_NUM_THREADS.
int get_num_threads();
// Takes effect for regions that begin afterwards; RuntimeError below 1.
void set_num_threads(int threads);
// Whether the calling thread is inside a chunk, where parallel_for runs inline.
bool in_parallel_region();

// Runs `hook` once on every worker thread, before its next chunk: libraries with thread pools of
// their own (oneDNN's OpenMP) are told here to use one thread per worker. Calling threads are no
// workers.
void add_worker_start_hook(void (*hook)());

namespace detail {
using ChunkFn = void (*)(const void* context, int64_t begin, int64_t end);

// How long the chunks of one parallel_for in the program take, in nanoseconds. The longest of late
// counts: what is taken for short by mistake does without the other threads.
class ChunkTime {
 public:
  // Of so many chunks on one thread; 0 if nothing is known.
  int64_t of(int64_t chunks) const { return chunks * one_.load(std::memory_order_relaxed); }
  void learn(int64_t one) {
    const int64_t before = one_.load(std::memory_order_relaxed), faded = before - before / 8;
    one = one > faded ? one : faded;
    if (one != before) one_.store(one > 0 ? one : 1, std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> one_{0};
};

void run_chunks(int64_t begin, int64_t end, int64_t chunk, ChunkFn fn, const void* context,
                ChunkTime& time);
}  // namespace detail

template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& fn) {
  const int64_t n = end - begin;
  if (n <= 0) return;
  const int64_t chunk = chunk_length(n, grain);
  if (n <= chunk) {
    fn(begin, end);
    return;
  }
  static constinit detail::ChunkTime time;
  detail::run_chunks(
      begin, end, chunk,
      [](const void* context, int64_t from, int64_t to) {
        (*static_cast<const F*>(context))(from, to);
      },
      &fn, time);
}

}  // namespace taeda
