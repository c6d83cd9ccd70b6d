#include "core/allocator.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <string>

#include "base/cgroup.h"
#include "base/fail_allocation.h"
#include "base/fork.h"
#include "core/caching_allocator.h"

namespace taeda {
namespace {

constexpr int64_t kHugePage = 2 << 20;
constexpr int64_t kMaxMalloc = 32 << 10;  // up to here the C library supplies what the lists lack
constexpr int64_t kMaxCached = 1 << 20;   // up to here threads keep lists
constexpr int64_t kListBudget = 8 << 20;  // bytes that one thread keeps
constexpr auto kIdle = std::chrono::seconds(10);

struct CpuDevice {
  // A page of most systems. Where pages are larger two blocks may share one: who wants whole pages
  // must ask whether the block has them (core/shared/in_place.h).
  static constexpr int64_t kRounding = 4096;
  struct Event {};  // the CPU has no streams

  CgroupMemory cgroups{own_cgroups(), "/sys/fs/cgroup"};
  int64_t mapped = 0;

  void* allocate(int64_t bytes) {
    // Pages count only when they are touched, and then it is too late for an exception.
    if (cgroups.available(mapped) < bytes) return nullptr;
    // Huge pages need alignment: map more and cut off the ends.
    const auto size = static_cast<size_t>(bytes);
    char* memory = static_cast<char*>(mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<uintptr_t>(memory);
    const size_t head = (kHugePage - start % kHugePage) % kHugePage;
    if (head) munmap(memory, head);
    if (kHugePage - head) munmap(memory + head + size, kHugePage - head);
    madvise(memory + head, size, MADV_HUGEPAGE);
    mapped += bytes;
    return memory + head;
  }
  void release(void* memory, int64_t bytes) {
    munmap(memory, static_cast<size_t>(bytes));
    mapped -= bytes;
  }
  Event record_event(int64_t) { return {}; }
  bool query_event(Event&) { return true; }
  void wait_event(Event&) {}
  std::string name() const { return "CPU"; }
};

std::atomic<bool (*)(void*)> before_release{nullptr};

std::atomic<bool> forked{
    false};  // this process is a child and still has its parent's cached segments

int64_t system_memory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

struct Cache {
  // The machine's memory, or what this process's cgroups leave of it.
  int64_t cpu_memory() {
    const int64_t cgroup = allocator.device().cgroups.limit();
    return cgroup > 0 ? std::min(cgroup, system_memory()) : system_memory();
  }
  Cache() {
    // Never more than there is: an error, after everything cached is given back, beats being
    // killed.
    allocator.set_limit(cpu_memory());
    protect_over_fork(allocator.mutex());
    pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
  }
  CachingAllocator<CpuDevice> allocator;
  std::atomic<int64_t> next_idle_check{0};
};

// Never destroyed: storages may be released while the process exits.
Cache& cache() {
  static Cache& instance = *new Cache;
  return instance;
}

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Now and then, segments that nobody used for a while are given back.
void release_idle_segments() {
  Cache& c = cache();
  const int64_t now = now_ns();
  int64_t due = c.next_idle_check.load(std::memory_order_relaxed);
  if (now < due) return;
  constexpr int64_t kInterval = 1'000'000'000;
  if (!c.next_idle_check.compare_exchange_strong(due, now + kInterval) || due == 0) return;
  c.allocator.release_idle(std::chrono::steady_clock::now() - kIdle);
}

void* allocate_large(int64_t nbytes) {
  // A child would copy its parent's free pages one by one when it writes to them; fresh ones are
  // cheaper.
  if (forked.load(std::memory_order_relaxed) && forked.exchange(false))
    cache().allocator.empty_cache();
  release_idle_segments();
  return cache().allocator.allocate(nbytes);
}

// --- size classes: multiples of 64 bytes up to 512, then four to a doubling ---

constexpr int kLinearClasses = 8;
constexpr int kClasses = kLinearClasses + 4 * 11;

constexpr int size_class(int64_t nbytes) {
  if (nbytes <= 512) return static_cast<int>((nbytes + 63) / 64) - 1;
  const auto last = static_cast<uint64_t>(nbytes - 1);
  const int doubling = std::bit_width(last) - 1;  // 2^doubling <= nbytes - 1
  return kLinearClasses + 4 * (doubling - 9) + static_cast<int>((last >> (doubling - 2)) & 3);
}
constexpr int64_t class_bytes(int which) {
  if (which < kLinearClasses) return 64 * (which + 1);
  const int doubling = 9 + (which - kLinearClasses) / 4, quarter = (which - kLinearClasses) % 4;
  return (int64_t{5 + quarter} << doubling) / 4;
}
static_assert(size_class(512) == 7 && class_bytes(7) == 512);
static_assert(size_class(513) == 8 && class_bytes(8) == 640);
static_assert(size_class(1024) == 11 && class_bytes(11) == 1024);
static_assert(size_class(kMaxCached) == kClasses - 1 && class_bytes(kClasses - 1) == kMaxCached);

// Longest list of a class: many small blocks, few large ones.
constexpr uint32_t max_list(int which) {
  const int64_t fit = (int64_t{1} << 20) / class_bytes(which);
  return static_cast<uint32_t>(fit < 4 ? 4 : fit > 256 ? 256 : fit);
}

struct FreeBlock {
  FreeBlock* next;
};
// Trivially destructible, so that it outlives every thread-local object with a destructor.
struct ThreadLists {
  FreeBlock* head[kClasses] = {};
  uint32_t count[kClasses] = {};
  int64_t bytes = 0;  // in the lists
  bool registered = false;
  bool ended = false;
};
thread_local ThreadLists lists __attribute__((tls_model("initial-exec")));

// Live bytes: each thread counts what it allocates less what it releases, without sharing a cache
// line. Counters of ended threads are added to `ended`.
struct alignas(64) Counter {
  std::atomic<int64_t> live{0};
  Counter* next = nullptr;
  Counter* previous = nullptr;
};
struct Counters {
  Counters() { protect_over_fork(mutex); }
  std::mutex mutex;
  Counter head;  // of the list of living threads' counters
  std::atomic<int64_t> ended{0};
};
Counters& counters() {
  static Counters& instance = *new Counters;
  return instance;
}
thread_local Counter* counter __attribute__((tls_model("initial-exec"))) = nullptr;

void count_live(int64_t bytes) {
  if (counter) [[likely]] {
    counter->live.store(counter->live.load(std::memory_order_relaxed) + bytes,
                        std::memory_order_relaxed);
  } else {
    counters().ended.fetch_add(bytes, std::memory_order_relaxed);
  }
}

void* take_from_source(int which) {
  const int64_t bytes = class_bytes(which);
  if (bytes > kMaxMalloc) return allocate_large(bytes);
  void* memory = std::aligned_alloc(64, static_cast<size_t>(bytes));
  TD_CHECK_AS(ErrorKind::kOutOfMemory, memory != nullptr, "CPU out of memory. Tried to allocate {}",
              bytes_text(bytes));
  return memory;
}
void give_to_source(void* memory, int which) {
  if (class_bytes(which) > kMaxMalloc)
    cache().allocator.release(memory);
  else
    std::free(memory);
}

void flush_lists() {
  for (int which = 0; which < kClasses; which++) {
    while (FreeBlock* block = lists.head[which]) {
      lists.head[which] = block->next;
      give_to_source(block, which);
    }
    lists.count[which] = 0;
  }
  lists.bytes = 0;
}

struct ThreadEnd {
  ThreadEnd() {
    counter = new Counter;
    Counters& all = counters();
    std::lock_guard<std::mutex> lock(all.mutex);
    counter->next = all.head.next;
    counter->previous = &all.head;
    if (counter->next) counter->next->previous = counter;
    all.head.next = counter;
  }
  ~ThreadEnd() {
    flush_lists();
    lists.registered = false;
    lists.ended = true;
    Counters& all = counters();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.ended.fetch_add(counter->live.load(std::memory_order_relaxed), std::memory_order_relaxed);
    counter->previous->next = counter->next;
    if (counter->next) counter->next->previous = counter->previous;
    delete counter;
    counter = nullptr;
  }
  void touch() {}
};
thread_local ThreadEnd thread_end;

void register_thread() {
  if (lists.ended) return;
  thread_end.touch();
  lists.registered = true;
}

void release_to_lists(void* memory, int which) {
  if (!lists.registered) [[unlikely]]
    register_thread();
  const int64_t bytes = class_bytes(which);
  if (!lists.registered || lists.count[which] >= max_list(which) ||
      lists.bytes + bytes > kListBudget) {
    return give_to_source(memory, which);
  }
  auto* block = static_cast<FreeBlock*>(memory);
  block->next = lists.head[which];
  lists.head[which] = block;
  lists.count[which]++;
  lists.bytes += bytes;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Every storage gets a block of the C library's, of its exact size, and gives it back: the
// sanitizer sees the first byte beyond it and every use after it is freed. TAEDA_ALLOCATOR=caching:
// as in other builds.
const bool system_only = [] {
  const char* text = std::getenv("TAEDA_ALLOCATOR");
  return !text || std::string(text) != "caching";
}();
#else
constexpr bool system_only = false;
#endif

void* allocate_from_system(int64_t nbytes) {
  void* memory = nullptr;
  TD_CHECK_AS(ErrorKind::kOutOfMemory,
              nbytes > 0 && posix_memalign(&memory, 64, static_cast<size_t>(nbytes)) == 0,
              "CPU out of memory. Tried to allocate {}", bytes_text(nbytes));
  count_live(nbytes);
  return memory;
}

}  // namespace

void* allocate_cpu(int64_t nbytes) {
  if (nbytes == 0) return nullptr;
  TD_CHECK_AS(ErrorKind::kOutOfMemory, !allocation_fails(),
              "CPU out of memory. Tried to allocate {} (injected failure)", bytes_text(nbytes));
  if (system_only) return allocate_from_system(nbytes);
  if (nbytes > kMaxCached || nbytes < 0) {
    void* memory = allocate_large(nbytes);
    count_live(nbytes);
    return memory;
  }
  const int which = size_class(nbytes);
  if (!lists.registered) [[unlikely]]
    register_thread();
  void* memory;
  if (FreeBlock* block = lists.head[which]) [[likely]] {
    lists.head[which] = block->next;
    lists.count[which]--;
    lists.bytes -= class_bytes(which);
    memory = block;
  } else {
    memory = take_from_source(which);
  }
  count_live(class_bytes(which));
  return memory;
}

void release_cpu(void* memory, int64_t nbytes) {
  if (!memory) return;
  if (nbytes > kMaxMalloc) {
    const auto ask = before_release.load(std::memory_order_acquire);
    if (ask && !ask(memory)) return;
  }
  if (system_only) {
    count_live(-nbytes);
    return std::free(memory);
  }
  if (nbytes > kMaxCached) {
    count_live(-nbytes);
    return cache().allocator.release(memory);
  }
  const int which = size_class(nbytes);
  count_live(-class_bytes(which));
  release_to_lists(memory, which);
}

int64_t cpu_block_bytes(const void* memory) { return cache().allocator.block_bytes(memory); }
void ask_before_release(bool (*may_be_used_again)(void*)) {
  before_release.store(may_be_used_again, std::memory_order_release);
}

void empty_cpu_cache() {
  flush_lists();
  cache().allocator.empty_cache();
}

MemoryStats cpu_memory_stats() { return cache().allocator.stats(); }
void reset_cpu_peak_stats() { cache().allocator.reset_peak_stats(); }
std::vector<SegmentInfo> cpu_memory_snapshot() { return cache().allocator.snapshot(); }
void set_cpu_memory_limit(int64_t bytes) {
  cache().allocator.set_limit(bytes > 0 ? bytes : cache().cpu_memory());
}
int64_t cpu_memory_limit() { return cache().allocator.limit(); }

int64_t cpu_live_bytes() {
  Counters& all = counters();
  std::lock_guard<std::mutex> lock(all.mutex);
  int64_t bytes = all.ended.load(std::memory_order_relaxed);
  for (Counter* c = all.head.next; c; c = c->next) bytes += c->live.load(std::memory_order_relaxed);
  return bytes;
}

}  // namespace taeda
