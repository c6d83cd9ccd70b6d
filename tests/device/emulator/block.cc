#include "device/emulator/block.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>

namespace taeda::emulator {
namespace {

constexpr size_t kSharedLimit = 227 << 10;
thread_local Block* running_block = nullptr;

struct Ended {};

[[noreturn]] void fault(const std::string& text) { throw LaunchError(text); }

}  // namespace

Block* Block::running() { return running_block; }

Block::Block(const std::function<void()>& thread, dim3 size, size_t shared_bytes,
             std::mt19937& random, sanitizer::Launch& launch)
    : body_(thread),
      size_(size),
      count_(size.x * size.y * size.z),
      threads_(count_),
      order_((count_ + 31) / 32),
      exchanges_(order_.size()),
      ended_(order_.size()),
      launch_(launch),
      shared_bytes_(shared_bytes) {
  std::iota(order_.begin(), order_.end(), 0u);
  std::shuffle(order_.begin(), order_.end(), random);
  running_block = this;
  scheduler_seen_ = sanitizer::current();
}
Block::~Block() {
  running_block = nullptr;
  const sanitizer::Unseen blocks_are_not_ordered;
  shared_.clear();
  shared_memory_.clear();
  exchanges_.clear();
}

void Block::run() {
  while (done_ < count_) {
    // A warp goes on until it can no more: who relies on another one having come as far finds out.
    bool moved = false;
    for (const unsigned warp : order_)
      while (run_warp(warp)) moved = true;
    if (!moved) release_barrier();
  }
}

// One turn for each thread of the warp that can run.
bool Block::run_warp(unsigned warp) {
  bool moved = false;
  for (unsigned i = warp * 32; i < std::min(count_, warp * 32 + 32); i++) {
    Thread& thread = threads_[i];
    if (thread.state != State::kNew && thread.state != State::kReady) continue;
    resume(i);
    moved = true;
    if (error_) std::rethrow_exception(error_);
  }
  return moved;
}

void Block::resume(unsigned number) {
  Thread& thread = threads_[number];
  current_ = number;
  if (thread.state == State::kNew) {
    if (!idle_) idle_ = std::make_unique<Fiber>(&Block::work);
    thread.fiber = std::move(idle_);
  }
  threadIdx = {number % size_.x, number / size_.x % size_.y, number / (size_.x * size_.y)};
  if (thread.seen) sanitizer::enter(thread.seen);
  scheduler_.switch_to(*thread.fiber);
  if (sanitizer::kIsOn) idle_.reset();
}

// What a fiber does: a thread, and those of its warp that have not begun, for as long as none
// waits.
void Block::work() {
  Fiber::entered(running_block->scheduler_);
  for (;;) {
    Block& block = *running_block;
    const unsigned number = block.current_;
    block.run_thread(number);
    const unsigned next = number + 1;
    if (!sanitizer::kIsOn && !block.error_ && next < block.count_ && next % 32 &&
        block.threads_[next].state == State::kNew) {
      block.threads_[next].fiber = std::move(block.threads_[number].fiber);
      block.current_ = next;
      threadIdx = {next % block.size_.x, next / block.size_.x % block.size_.y,
                   next / (block.size_.x * block.size_.y)};
      continue;
    }
    // The stack waits for the block's next thread.
    block.idle_ = std::move(block.threads_[number].fiber);
    block.idle_->switch_to(block.scheduler_);
  }
}

void Block::run_thread(unsigned number) {
  threads_[number].state = State::kReady;
  threads_[number].seen = sanitizer::create();
  sanitizer::enter(threads_[number].seen);
  launch_.thread_begins();
  try {
    body_();
  } catch (const Ended&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  launch_.thread_ends();
  sanitizer::enter(scheduler_seen_);
  launch_.keep(threads_[number].seen);
  threads_[number].seen = nullptr;
  threads_[number].state = State::kDone;
  ended_[number / 32] |= 1u << number % 32;
  done_++;
  turns_ = 0;
}

void Block::wait(State state, const char* where) {
  const unsigned number = current_;
  Thread& thread = threads_[number];
  thread.state = state;
  thread.waits_at = where;
  sanitizer::enter(scheduler_seen_);
  thread.fiber->switch_to(scheduler_);
}

void Block::barrier(const char* where) {
  const sanitizer::Unseen own_memory;
  turns_ = 0;
  // Two in turns: whoever is already at the next one orders nothing for those who leave this one.
  char* const token = &barriers_[threads_[current_].barriers++ % 2];
  sanitizer::release(token);
  wait(State::kAtBarrier, where);
  sanitizer::acquire(token);
}

// Nobody can go on but by a barrier: those who wait must wait at the same one.
void Block::release_barrier() {
  const char* where = nullptr;
  for (Thread& thread : threads_) {
    if (thread.state != State::kAtBarrier) continue;
    if (where && std::string_view(where) != thread.waits_at)
      fault(std::string("threads of a block wait at different barriers: ") + where + " and " +
            thread.waits_at);
    where = thread.waits_at;
    thread.state = State::kReady;
  }
}

Block::Exchange& Block::arrive(uint32_t mask, uint64_t value, const char* what) {
  const sanitizer::Unseen own_memory;
  const unsigned lane = current_ % 32, warp = current_ / 32;
  const std::string name = what;
  Exchange& e = exchanges_[warp][mask];  // lanes of other masks may be elsewhere meanwhile
  const auto turn = [&] {
    if (++turns_ > 64 * uint64_t{count_} + 4096) fault(name + ": a lane of the mask never arrives");
    wait(State::kReady, what);
  };
  if (!(mask >> lane & 1)) fault(name + ": the mask leaves out the lane that calls");
  while (e.staying) turn();  // lanes are still reading the one before
  if (mask & ended_[warp]) fault(name + ": the mask names a lane whose thread has ended");
  if (!e.arrived) e.what = what;
  if (std::string_view(e.what) != what) fault(name + ": lanes of one mask differ in operation");
  e.values[lane] = value;
  e.arrived |= 1u << lane;
  sanitizer::release(&e);
  while (e.arrived != mask && !e.staying) turn();
  if (!e.staying) e.staying = mask, turns_ = 0;
  sanitizer::acquire(&e);
  return e;
}
void Block::leave(Exchange& e) {
  e.staying &= ~(1u << current_ % 32);
  if (!e.staying) e.arrived = 0;
}

// Pieces of the heap, so that the address sanitizer sees what is beyond them.
void* Block::shared(const void* key, size_t bytes) {
  void*& memory = shared_[key];
  if (!memory) {
    const sanitizer::Unseen whoever_comes_first;
    shared_used_ += bytes;
    if (shared_used_ > kSharedLimit) fault("more shared memory than a block may have");
    shared_memory_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    memory = shared_memory_.back().get();
    std::memset(memory, 0xff, bytes);
  }
  return memory;
}

void end_thread() { throw Ended(); }
void barrier(const char* where) { Block::running()->barrier(where); }
uint64_t exchange(uint32_t mask, uint64_t bits, unsigned source, const char* what) {
  return Block::running()->exchange(mask, bits, what,
                                    [&](const Block::Exchange& e) { return e.values[source]; });
}
uint32_t ballot(uint32_t mask, bool bit, const char* what) {
  return Block::running()->exchange(mask, bit, what, [&](const Block::Exchange& e) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < 32; i++)
      if (mask >> i & 1) bits |= static_cast<uint32_t>(e.values[i] != 0) << i;
    return bits;
  });
}
unsigned lane() { return Block::running()->thread_number() % 32; }
void* shared(const void* key, size_t bytes) { return Block::running()->shared(key, bytes); }
void* dynamic_shared() { return Block::running()->dynamic_shared(); }

}  // namespace taeda::emulator
