// draw_words: random words for many elements, made into numbers by several threads.
//
// The order of the stream is that of the elements, and only one thread at a time can continue it;
// but that is the smaller part of the work. Each thread takes the next chunk of the elements
// together with its words, which are the same ones whoever takes it, and leaves the generator to
// the others while it makes numbers of them.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "base/interrupt.h"
#include "taeda/generator.h"

namespace taeda::cpu {

// Holds a generator's mutex. Nothing interrupts its holder, but in look().
class GeneratorLock {
 public:
  explicit GeneratorLock(Generator& generator)
      : lock_(generator.mutex()), generator_(generator.twister()) {
    deferred_.emplace();
  }
  Mt19937& operator*() const { return generator_; }
  Mt19937* operator->() const { return &generator_; }

  // Frees the mutex and looks whether the program wants the operator to stop.
  void look() {
    deferred_.reset();
    lock_.unlock();
    check_interrupt();
    lock_.lock();
    deferred_.emplace();
  }

 private:
  std::unique_lock<std::mutex> lock_;
  Mt19937& generator_;
  std::optional<DeferInterrupts> deferred_;
};

// A generator's numbers one by one, several times as fast. Others must not draw from it meanwhile,
// but after flush().
class Draws {
 public:
  explicit Draws(Mt19937& generator) : generator_(generator) {}
  Draws(const Draws&) = delete;
  Draws& operator=(const Draws&) = delete;
  ~Draws() { flush(); }
  void flush() {
    if (next_ > 0) generator_.skip(next_);
    next_ = end_ = 0;
  }
  [[gnu::always_inline]] uint32_t random() {
    if (next_ == end_) refill();
    return words_[next_++];
  }
  [[gnu::always_inline]] double uniform() {
    const uint64_t high = random();
    return Mt19937::unit(high << 32 | random());
  }

 private:
  void refill();
  Mt19937& generator_;
  int64_t next_ = 0, end_ = 0;
  static constexpr int64_t kAtOnce = 64;
  uint32_t words_[kAtOnce];
};

// f(words, begin, n) for chunks that cover 0 .. count: `words`, as Mt19937::draw gives them, has
// `each` for each of the n elements from `begin` on.
void draw_words(GeneratorLock& generator, int64_t count, int64_t each,
                const std::function<void(const uint32_t* words, int64_t begin, int64_t n)>& f);

}  // namespace taeda::cpu
