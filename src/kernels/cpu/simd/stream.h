// Stores that pass by the cache.
//
// An ordinary store first fetches the line that it overwrites, and what it writes pushes other
// memory out of the cache. A loop that touches more than the last cache holds loses a third of its
// bandwidth to that: it computes blocks in a buffer in the first-level cache and streams them out.
#pragma once

#include <cstdint>

#include "base/parallel.h"

namespace taeda::cpu {

// What a block holds at most: small enough that the processor computes the next while this one
// leaves.
inline constexpr int64_t kStreamBytes = 2048;

// The shortest chunk whose whole lines are worth storing apart from its ends.
inline constexpr int64_t kStreamedChunk = 512;

// Whether a loop that touches `bytes` of memory, its result included, should stream the result.
inline bool worth_streaming(int64_t bytes) {
  // What the cores of one chip share; virtual machines report anything. One thread gains already
  // where the cache would just hold all; several are bound by main memory then.
  constexpr int64_t kLastCache = int64_t{32} << 20;
  return bytes >= (get_num_threads() == 1 ? kLastCache : kLastCache / 4 * 5);
}
// The same where operands are read across memory order: the result is then written in short chunks
// that lie far apart, whose lines are not prefetched.
inline bool worth_streaming_chunks(int64_t bytes) {
  constexpr int64_t kMuch = int64_t{8} << 20;
  return bytes >= kMuch;
}

// dst[0..bytes) = src[0..bytes), past the cache as far as whole vectors go.
void stream(void* dst, const void* src, int64_t bytes);

// Makes the streamed stores of a task visible before those that follow: to be destroyed at its end.
class StreamFence {
 public:
  StreamFence() = default;
  StreamFence(const StreamFence&) = delete;
  StreamFence& operator=(const StreamFence&) = delete;
  ~StreamFence() {
    if (pending) fence();
  }
  bool pending = false;

 private:
  static void fence();
};

}  // namespace taeda::cpu
