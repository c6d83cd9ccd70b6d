#include "data/shared_area.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/shared/available_memory.h"
#include "core/shared/memory_file.h"
#include "taeda/error.h"

namespace taeda::data {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSmallest = size_t{1} << 26;

size_t page_down(size_t x) { return x / kPage * kPage; }
size_t page_up(size_t x) { return page_down(x + kPage - 1); }

struct Held {
  std::shared_ptr<SharedArea> area;
  Block* block;
};

// Never destroyed: storages may die while the process exits.
struct Areas {
  std::mutex mutex;
  std::vector<SharedArea*> all;
  size_t blocks = 0, bytes = 0;  // held by storages of this process
};
Areas& areas() {
  static Areas& instance = *new Areas;
  return instance;
}

[[noreturn]] void fail_system(const char* what) {
  fail(ErrorKind::kRuntime, "DataLoader: cannot {} memory shared with a worker: {}", what,
       std::strerror(errno));
}

struct Range {
  char *begin, *end;
};

// The pages of blocks, in order, those that touch as one.
std::vector<Range> pages_of(const std::unordered_multiset<Block*>& blocks) {
  std::vector<Range> ranges;
  for (Block* block : blocks) {
    const auto begin = reinterpret_cast<uintptr_t>(block);
    const auto end = reinterpret_cast<uintptr_t>(block->data()) + block->bytes;
    ranges.push_back(
        {reinterpret_cast<char*>(page_down(begin)), reinterpret_cast<char*>(page_up(end))});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  size_t n = 0;
  for (const Range& range : ranges) {
    if (n > 0 && range.begin <= ranges[n - 1].end)
      ranges[n - 1].end = std::max(ranges[n - 1].end, range.end);
    else
      ranges[n++] = range;
  }
  ranges.resize(n);
  return ranges;
}

// f(begin, end) for what lies between ranges, from `begin` to `end`.
template <class F>
void between(const std::vector<Range>& ranges, char* begin, char* end, const F& f) {
  for (const Range& range : ranges) {
    if (begin < range.begin) f(begin, range.begin);
    begin = range.end;
  }
  if (begin < end) f(begin, end);
}

constexpr int kOwn = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Memory of this process in place of shared memory. A forked child that cannot get any ends: its
// tensors would change with its parent's.
void map_own(char* begin, size_t bytes) {
  if (mmap(begin, bytes, PROT_READ | PROT_WRITE, kOwn, -1, 0) != MAP_FAILED) return;
  constexpr char kMessage[] =
      "taeda: a forked process cannot copy the tensors of a DataLoader: no memory to map\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(1);
}

// Copies page by page, which needs no second mapping of the whole.
void copy_pages(const Range& range) {
  char page[kPage];
  for (char* at = range.begin; at < range.end; at += kPage) {
    std::memcpy(page, at, kPage);
    map_own(at, kPage);
    std::memcpy(at, page, kPage);
  }
}

}  // namespace

// Runs while this process forks: the child gets copies of what it holds. Until it has made them the
// blocks stay held, and the thread that forks waits, so that it cannot write to them. The parent
// counts them down again, also when there is no child or when that was killed.
struct ForkHandlers {
  static void install() {
    static const int installed = pthread_atfork(before, in_parent, in_child);
    (void)installed;
  }
  static void before() {
    areas().mutex.lock();
    copied[0] = copied[1] = -1;
    bool held = false;
    for_each([&](SharedArea& area) {
      held |= !area.held_.empty();
      area.count(1);
    });
    // Without descriptors nobody waits: what the parent writes at once may be in the copies, the
    // child counts down, and if there is none the blocks stay held as long as the area.
    if (held && pipe2(copied, O_CLOEXEC) != 0) copied[0] = copied[1] = -1;
  }
  static void in_parent() {
    if (copied[0] >= 0) {
      close(copied[1]);
      char nothing;
      while (read(copied[0], &nothing, 1) < 0 && errno == EINTR) {  // ends when the child closes it
      }
      close(copied[0]);
      for_each([](SharedArea& area) { area.count(-1); });
    }
    areas().mutex.unlock();
  }
  static void in_child() {
    const bool parent_counts = copied[0] >= 0;
    for_each([&](SharedArea& area) { area.make_private(parent_counts); });
    if (copied[0] >= 0) {
      close(copied[0]);
      close(copied[1]);
    }
    areas().mutex.unlock();
  }
  template <class F>
  static void for_each(const F& f) {
    for (SharedArea* area : areas().all)
      if (!area->inherited_ && !area->private_) f(*area);
  }
  static int copied[2];  // a pipe that the child closes when it has its copies
};
int ForkHandlers::copied[2];

std::shared_ptr<SharedArea> SharedArea::create(size_t bytes) {
  std::shared_ptr<SharedArea> area(new SharedArea);
  area->handle_ = shared::create_memory_file("taeda_loader");
  if (area->handle_ < 0) fail_system("get");
  for (area->bytes_ = page_up(bytes);; area->bytes_ = page_up(area->bytes_ / 4)) {
    const bool last = area->bytes_ < kSmallest;
    if (ftruncate(area->handle_, static_cast<off_t>(area->bytes_)) == 0) {
      void* data = mmap(nullptr, area->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        area->handle_, 0);
      if (data != MAP_FAILED) {
        area->data_ = static_cast<char*>(data);
        break;
      }
    }
    if (last) fail_system("map");
  }
  if (fcntl(area->handle_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) fail_system("seal");
  area->map();
  return area;
}

std::shared_ptr<SharedArea> SharedArea::open(int handle) {
  std::shared_ptr<SharedArea> area(new SharedArea);
  area->handle_ = fcntl(handle, F_DUPFD_CLOEXEC, 0);
  struct stat status;
  if (area->handle_ < 0 || fstat(handle, &status) != 0) fail_system("open");
  const int seals = fcntl(handle, F_GET_SEALS);
  TD_CHECK(seals >= 0 && (seals & F_SEAL_SHRINK),
           "DataLoader: expected a memory file whose size is sealed, got one that can shrink");
  area->bytes_ = static_cast<size_t>(status.st_size);
  void* data = mmap(nullptr, area->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                    area->handle_, 0);
  if (data == MAP_FAILED) fail_system("map");
  area->data_ = static_cast<char*>(data);
  area->map();
  return area;
}

void SharedArea::map() {
  madvise(data_, bytes_, MADV_DONTDUMP);
  ForkHandlers::install();
  std::lock_guard<std::mutex> lock(areas().mutex);
  areas().all.push_back(this);
}

SharedArea::~SharedArea() {
  {
    std::lock_guard<std::mutex> lock(areas().mutex);
    std::erase(areas().all, this);
  }
  if (data_) munmap(data_, bytes_);
  if (handle_ >= 0) close(handle_);
}

bool SharedArea::commit(size_t offset, size_t bytes) {
  const size_t begin = page_down(offset), end = page_up(offset + bytes);
  return shared::is_memory_available(end - begin) &&
         shared::allocate_pages(handle_, begin, end - begin);
}

void SharedArea::decommit(size_t offset, size_t bytes) {
  const size_t begin = page_up(offset), end = page_down(offset + bytes);
  if (begin >= end || handle_ < 0) return;
  fallocate(handle_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
            static_cast<off_t>(end - begin));
}

void SharedArea::set_inherited(bool inherited) {
  std::lock_guard<std::mutex> lock(areas().mutex);
  inherited_ = inherited;
}

void SharedArea::retire() {
  std::lock_guard<std::mutex> lock(areas().mutex);
  if (handle_ < 0 || private_) return;
  const std::vector<Range> kept = pages_of(held_);
  between(kept, data_, data_ + bytes_, [&](char* begin, char* end) {
    decommit(static_cast<size_t>(begin - data_), static_cast<size_t>(end - begin));
  });
  close(std::exchange(handle_, -1));
  char* const begin = kept.empty() ? data_ : kept.front().begin;
  char* const end = kept.empty() ? data_ : kept.back().end;
  if (data_ < begin) munmap(data_, static_cast<size_t>(begin - data_));
  if (end < data_ + bytes_) munmap(end, static_cast<size_t>(data_ + bytes_ - end));
  bytes_ = static_cast<size_t>(end - begin);
  data_ = bytes_ > 0 ? begin : nullptr;
}

void SharedArea::hold(Block* block) {
  std::lock_guard<std::mutex> lock(areas().mutex);
  held_.insert(block);
  areas().blocks++;
  areas().bytes += block->bytes;
}

void SharedArea::drop(Block* block) {
  std::lock_guard<std::mutex> lock(areas().mutex);
  held_.erase(held_.find(block));
  areas().blocks--;
  areas().bytes -= block->bytes;
  if (!private_) block->holders.fetch_sub(1, std::memory_order_acq_rel);
}

void SharedArea::release(void* held) {
  auto* const holder = static_cast<Held*>(held);
  holder->area->drop(holder->block);
  delete holder;
}

Ref<Storage> SharedArea::storage(Block* block, char* begin, int64_t nbytes) {
  auto holder = std::make_unique<Held>(Held{shared_from_this(), block});
  hold(block);
  Ref<Storage> storage = Storage::wrap(begin, nbytes, DeviceType::kCPU, release, holder.get());
  holder.release();
  storage->set_movable();
  return storage;
}

Block* SharedArea::block_of(const Storage& storage) const {
  const auto* held = static_cast<const Held*>(storage.context_of(release));
  return held && held->area.get() == this && !private_ ? held->block : nullptr;
}

size_t SharedArea::held_blocks() {
  std::lock_guard<std::mutex> lock(areas().mutex);
  return areas().blocks;
}
size_t SharedArea::held_bytes() {
  std::lock_guard<std::mutex> lock(areas().mutex);
  return areas().bytes;
}

void SharedArea::count(int change) {
  for (Block* block : held_)
    block->holders.fetch_add(static_cast<uint32_t>(change), std::memory_order_acq_rel);
}

// Only system calls and plain memory: other threads of the parent are gone, with what they locked.
void SharedArea::make_private(bool parent_counts) {
  const std::vector<Range> kept = pages_of(held_);
  for (const Range& range : kept) {
    const auto n = static_cast<size_t>(range.end - range.begin);
    void* const shared = mremap(range.begin, 0, n, MREMAP_MAYMOVE);
    if (shared == MAP_FAILED) {
      copy_pages(range);
      continue;
    }
    map_own(range.begin, n);
    std::memcpy(range.begin, shared, n);
    for (Block* block : held_) {
      auto* const at = reinterpret_cast<char*>(block);
      if (parent_counts || at < range.begin || at >= range.end) continue;
      auto* const there = reinterpret_cast<Block*>(static_cast<char*>(shared) + (at - range.begin));
      there->holders.fetch_sub(1, std::memory_order_acq_rel);
    }
    munmap(shared, n);
  }
  if (data_) {
    between(kept, data_, data_ + bytes_, [](char* begin, char* end) {
      mmap(begin, static_cast<size_t>(end - begin), PROT_NONE, kOwn, -1, 0);
    });
    mprotect(data_, kPage, PROT_READ | PROT_WRITE);  // who looks at a channel's cells
  }
  if (handle_ >= 0) close(std::exchange(handle_, -1));
  private_ = true;
}

}  // namespace taeda::data
