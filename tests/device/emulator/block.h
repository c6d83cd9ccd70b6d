// Block: the threads of one block, run in turns.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "device/emulator/emulator.h"
#include "device/emulator/fiber.h"
#include "device/emulator/thread_sanitizer.h"

namespace taeda::emulator {

class Block {
 public:
  // `random` chooses the order of warps.
  Block(const std::function<void()>& thread, dim3 size, size_t shared_bytes, std::mt19937& random,
        sanitizer::Launch& launch);
  ~Block();
  Block(const Block&) = delete;

  void run();
  static Block* running();  // the one whose thread calls

  void barrier(const char* where);
  struct Exchange {  // of the lanes of one mask, while they arrive and leave
    uint32_t arrived = 0, staying = 0;
    const char* what = "";
    std::array<uint64_t, 32> values{};
  };
  // All lanes of the mask give a value; `read` gets them.
  template <class Read>
  auto exchange(uint32_t mask, uint64_t value, const char* what, Read read) {
    Exchange& e = arrive(mask, value, what);
    const auto result = read(e);
    leave(e);
    return result;
  }
  void* shared(const void* key, size_t bytes);
  void* dynamic_shared() { return shared(this, shared_bytes_); }
  unsigned thread_number() const { return current_; }

 private:
  enum class State : uint8_t { kNew, kReady, kAtBarrier, kDone };
  struct Thread {
    State state = State::kNew;
    const char* waits_at = "";
    std::unique_ptr<Fiber> fiber;  // while it has begun and not ended
    void* seen = nullptr;          // the thread sanitizer's name for it
    unsigned barriers = 0;         // that it has come to
  };

  static void work();
  void run_thread(unsigned number);
  bool run_warp(unsigned warp);
  void release_barrier();
  void wait(State state, const char* where);
  Exchange& arrive(uint32_t mask, uint64_t value, const char* what);
  void leave(Exchange& exchange);
  void resume(unsigned number);

  const std::function<void()>& body_;
  dim3 size_;
  unsigned count_, current_ = 0, done_ = 0;
  std::vector<Thread> threads_;
  std::vector<unsigned> order_;                          // of warps
  std::vector<std::map<uint32_t, Exchange>> exchanges_;  // by warp and mask
  std::vector<uint32_t> ended_;                          // lanes, by warp
  Fiber scheduler_;
  void* scheduler_seen_ = nullptr;
  sanitizer::Launch& launch_;
  char barriers_[2] = {};        // what orders threads, for the thread sanitizer
  std::unique_ptr<Fiber> idle_;  // a fiber whose last thread has ended
  size_t shared_bytes_;
  size_t shared_used_ = 0;
  std::map<const void*, void*> shared_;
  std::vector<std::unique_ptr<char[]>> shared_memory_;
  uint64_t turns_ = 0;  // without a thread that ended or came to a barrier
  std::exception_ptr error_;
};

}  // namespace taeda::emulator
