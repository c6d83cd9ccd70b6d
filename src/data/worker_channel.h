// WorkerChannel: how a trainer and one data-loading worker talk.
//
// A SharedArea with two queues of messages, tasks to the worker and results back, each written by
// one side and read by the other without locks. A message is a block of the sender's. The worker
// sleeps on a futex until a task comes; the trainer sleeps on a descriptor (an eventfd shared by
// its workers, and the workers' pidfds), so that a death wakes it as a result does. A message costs
// about a microsecond, and a system call where the other side sleeps.
//
// Not thread-safe: each side uses its end from one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "data/block_allocator.h"
#include "data/shared_area.h"

namespace taeda::data {

class WorkerChannel {
 public:
  // Numbers that both sides read and the worker writes: what it does, how long it waited.
  static constexpr size_t kCells = 32;
  // Bytes at the file's end where the worker writes its Python stack.
  static constexpr size_t kStackBytes = size_t{1} << 20;

  // A channel for up to `capacity` messages under way each way, with `bytes` of address space.
  static std::shared_ptr<WorkerChannel> create(uint32_t capacity, size_t bytes);
  // The worker's end: of an inherited channel, or of a handle, which stays the caller's.
  void serve();
  static std::shared_ptr<WorkerChannel> open(int handle);

  SharedArea& area() { return *area_; }
  std::span<int64_t> cells();
  std::span<const char> stack() const;

  // A block for a message or data to the other side; null when memory is used up.
  Block* allocate(size_t bytes);
  // Hands a block, with one holder, to the other side. False when the queue is full.
  bool push(Block* block);
  // The other side's next message, which the caller releases; null when there is none.
  Block* pop();
  static void release(Block* block) { block->holders.fetch_sub(1, std::memory_order_acq_rel); }
  bool has_message() const;

  // Worker: sleeps until a task comes, the trainer closes, a signal comes or `ns` have passed.
  void wait_for_task(int64_t ns);
  // Trainer: from now on a result makes `notify` write to the descriptor; look for results after.
  void arm(bool armed);
  // Worker: after push, wakes a trainer that sleeps on the eventfd.
  void notify(int event_handle);

  // Trainer: no more results are wanted.
  void close();
  bool closed() const;

 private:
  struct Queue;
  struct Header;
  WorkerChannel(std::shared_ptr<SharedArea> area);
  void make_allocator();
  Queue& outgoing();
  Queue& incoming() const;
  uint64_t* slots(const Queue& queue) const;

  std::shared_ptr<SharedArea> area_;
  Header* header_;
  bool worker_ = false;
  std::optional<BlockAllocator> allocator_;
};

}  // namespace taeda::data
