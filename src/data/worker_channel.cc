#include "data/worker_channel.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bit>
#include <climits>

#include "taeda/error.h"

namespace taeda::data {
namespace {

constexpr size_t kTasksShare = 64;  // one part in 64 of the address space is for tasks

static_assert(std::atomic<uint32_t>::is_always_lock_free);

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

struct WorkerChannel::Queue {
  alignas(64) std::atomic<uint32_t> written;  // messages so far, by the sender
  alignas(64) std::atomic<uint32_t> read;     // by the receiver
};

struct WorkerChannel::Header {
  uint32_t capacity;                          // of each queue, a power of two
  size_t begin, middle;                       // of the tasks' blocks, of the results' blocks
  alignas(64) std::atomic<uint32_t> wakeups;  // what the worker sleeps on
  std::atomic<uint32_t> worker_sleeps, trainer_sleeps, closed;
  Queue tasks, results;
  alignas(64) int64_t cells[kCells];
  alignas(64) uint64_t slots[];  // 2 * capacity offsets of blocks
};

WorkerChannel::WorkerChannel(std::shared_ptr<SharedArea> area)
    : area_(std::move(area)), header_(reinterpret_cast<Header*>(area_->data())) {}

std::shared_ptr<WorkerChannel> WorkerChannel::create(uint32_t capacity, size_t bytes) {
  capacity = std::bit_ceil(capacity);
  const size_t head = sizeof(Header) + 2 * sizeof(uint64_t) * capacity;
  const size_t begin = (head + 4095) / 4096 * 4096;
  std::shared_ptr<SharedArea> area = SharedArea::create(std::max(bytes, 4 * begin + kStackBytes));
  const size_t middle = begin + (area->bytes() - begin) / kTasksShare / 4096 * 4096;
  if (!area->commit(0, begin) || !area->commit(middle, sizeof(Block) + BlockAllocator::kReserved))
    fail(ErrorKind::kOutOfMemory, "DataLoader: no memory left to share with a worker");
  auto* const header = new (area->data()) Header;
  header->capacity = capacity;
  header->begin = begin;
  header->middle = middle;
  std::shared_ptr<WorkerChannel> channel(new WorkerChannel(std::move(area)));
  channel->make_allocator();
  return channel;
}

std::shared_ptr<WorkerChannel> WorkerChannel::open(int handle) {
  std::shared_ptr<WorkerChannel> channel(new WorkerChannel(SharedArea::open(handle)));
  channel->serve();
  return channel;
}

void WorkerChannel::serve() {
  area_->set_inherited(false);  // by the worker's own children
  worker_ = true;
  make_allocator();
}

void WorkerChannel::make_allocator() {
  const size_t end = area_->bytes() - kStackBytes;
  if (worker_)
    allocator_.emplace(*area_, header_->middle, end);
  else
    allocator_.emplace(*area_, header_->begin, header_->middle);
}

std::span<int64_t> WorkerChannel::cells() { return header_->cells; }

std::span<const char> WorkerChannel::stack() const {
  return {area_->data() + area_->bytes() - kStackBytes, kStackBytes};
}

WorkerChannel::Queue& WorkerChannel::outgoing() {
  return worker_ ? header_->results : header_->tasks;
}
WorkerChannel::Queue& WorkerChannel::incoming() const {
  return worker_ ? header_->tasks : header_->results;
}
uint64_t* WorkerChannel::slots(const Queue& queue) const {
  return header_->slots + (&queue == &header_->results ? header_->capacity : 0);
}

Block* WorkerChannel::allocate(size_t bytes) {
  return area_->is_copy() ? nullptr : allocator_->allocate(bytes);
}

bool WorkerChannel::push(Block* block) {
  Queue& queue = outgoing();
  const uint32_t at = queue.written.load(std::memory_order_relaxed);
  if (at - queue.read.load(std::memory_order_acquire) >= header_->capacity) return false;
  block->sent = true;
  slots(queue)[at & (header_->capacity - 1)] =
      static_cast<uint64_t>(reinterpret_cast<char*>(block) - area_->data());
  queue.written.store(at + 1, std::memory_order_seq_cst);
  if (!worker_) {
    header_->wakeups.fetch_add(1, std::memory_order_seq_cst);
    if (header_->worker_sleeps.load(std::memory_order_seq_cst))
      futex(header_->wakeups, FUTEX_WAKE, INT_MAX, nullptr);
  }
  return true;
}

bool WorkerChannel::has_message() const {
  const Queue& queue = incoming();
  return queue.written.load(std::memory_order_seq_cst) !=
         queue.read.load(std::memory_order_relaxed);
}

Block* WorkerChannel::pop() {
  if (!has_message()) return nullptr;
  Queue& queue = incoming();
  const uint32_t at = queue.read.load(std::memory_order_relaxed);
  auto* const block =
      reinterpret_cast<Block*>(area_->data() + slots(queue)[at & (header_->capacity - 1)]);
  queue.read.store(at + 1, std::memory_order_release);
  return block;
}

void WorkerChannel::wait_for_task(int64_t ns) {
  const uint32_t seen = header_->wakeups.load(std::memory_order_seq_cst);
  header_->worker_sleeps.store(1, std::memory_order_seq_cst);
  const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
  if (!has_message() && !closed()) futex(header_->wakeups, FUTEX_WAIT, seen, &timeout);
  header_->worker_sleeps.store(0, std::memory_order_relaxed);
}

void WorkerChannel::arm(bool armed) {
  header_->trainer_sleeps.store(armed, std::memory_order_seq_cst);
}

void WorkerChannel::notify(int event_handle) {
  if (!header_->trainer_sleeps.load(std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  while (write(event_handle, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void WorkerChannel::close() {
  header_->closed.store(1, std::memory_order_seq_cst);
  header_->wakeups.fetch_add(1, std::memory_order_seq_cst);
  futex(header_->wakeups, FUTEX_WAKE, INT_MAX, nullptr);
}

bool WorkerChannel::closed() const { return header_->closed.load(std::memory_order_seq_cst) != 0; }

}  // namespace taeda::data
