#include "kernels/cpu/random/random_draws.h"

#include <algorithm>
#include <mutex>

#include "base/parallel.h"
#include "hwy/cache_control.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWordsDrawn = 1 << 14;
constexpr int64_t kChunksAtOnce = 1 << 9;  // between two looks for an interrupt

// Locks, without going to sleep for what another thread does in a microsecond.
void take_turn(std::mutex& turn) {
  for (int tries = 0; tries < 1000; tries++) {
    if (turn.try_lock()) return;
    hwy::Pause();
  }
  turn.lock();
}

}  // namespace

void Draws::refill() {
  flush();
  end_ = generator_.peek(words_, kAtOnce);
}

void draw_words(GeneratorLock& generator, int64_t count, int64_t each,
                const std::function<void(const uint32_t*, int64_t, int64_t)>& f) {
  const int64_t chunk = kWordsDrawn / each;
  std::mutex turn;
  for (int64_t next = 0; next < count;) {
    if (next > 0) generator.look();
    const int64_t end_of_slab = std::min(count, next + kChunksAtOnce * chunk);
    parallel_for(0, (end_of_slab - next + chunk - 1) / chunk, 1, [&](int64_t i, int64_t end) {
      alignas(64) uint32_t buffer[Mt19937::buffer_words(kWordsDrawn)];
      for (; i < end; i++) {
        take_turn(turn);
        const int64_t begin = next, n = std::min(chunk, end_of_slab - begin);
        next += n;
        const uint32_t* const words = generator->draw(n * each, buffer);
        turn.unlock();
        f(words, begin, n);
      }
    });
  }
}

}  // namespace taeda::cpu
