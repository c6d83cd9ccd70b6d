#include "data/page_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "base/fork.h"
#include "core/shared/available_memory.h"
#include "core/shared/memory_file.h"

namespace taeda::data {
namespace {

constexpr off_t kFileBytes = off_t{1} << 52;  // above all addresses of a program
constexpr size_t kRunBytes = size_t{1} << 17;
constexpr size_t kStates = 1024;
constexpr size_t kRuns = 256;

size_t page_bytes() { return PageStates::page_bytes(); }

char* pointer(uintptr_t address) { return reinterpret_cast<char*>(address); }

void* map_anonymous(size_t bytes, int flags) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

// Growing a file past the limit would be answered with a signal.
bool are_files_unlimited() {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

bool read_all(int file, char* to, size_t bytes, uintptr_t offset) {
  while (bytes > 0) {
    const ssize_t n = pread(file, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    offset += static_cast<size_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool write_all(int file, const char* from, size_t bytes, uintptr_t offset) {
  while (bytes > 0) {
    const ssize_t n = pwrite(file, from, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from += n;
    offset += static_cast<size_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

// Drops ranges, many by one system call where the system can do that (Linux 6.13).
class Dropping {
 public:
  ~Dropping() {
    if (process_ >= 0) close(process_);
  }
  bool add(uintptr_t begin, size_t bytes) {
    if (n_ > 0 && end(ranges_[n_ - 1]) == begin) {
      ranges_[n_ - 1].iov_len += bytes;
      return true;
    }
    if (n_ == kRuns && !drop()) return false;
    ranges_[n_++] = {pointer(begin), bytes};
    return true;
  }
  bool drop() {
    size_t done = drop_together();
    for (; done < n_; done++)
      if (madvise(ranges_[done].iov_base, ranges_[done].iov_len, MADV_DONTNEED) != 0) return false;
    n_ = 0;
    return true;
  }

 private:
  static uintptr_t end(const iovec& range) {
    return reinterpret_cast<uintptr_t>(range.iov_base) + range.iov_len;
  }
  // How many of the ranges.
  size_t drop_together() {
    if (n_ < 2) return 0;
    if (process_ == kUnknown) process_ = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    if (process_ < 0) return 0;
    ssize_t bytes = syscall(SYS_process_madvise, process_, ranges_, n_, MADV_DONTNEED, 0);
    size_t done = 0;
    for (; done < n_ && bytes >= static_cast<ssize_t>(ranges_[done].iov_len); done++)
      bytes -= static_cast<ssize_t>(ranges_[done].iov_len);
    return done;
  }

  static constexpr int kUnknown = -2;
  iovec ranges_[kRuns];
  size_t n_ = 0;
  int process_ = kUnknown;
};

// Never destroyed: files may be closed while the process exits.
struct Files {
  Files() { protect_over_fork(mutex); }
  std::mutex mutex;
  std::vector<PageFile*> all;
};
Files& files() {
  static Files& instance = *new Files;
  return instance;
}

}  // namespace

// A child that is no worker would keep the file's memory after the workers have ended.
struct PageFileForks {
  static void install() {
    static const int installed = pthread_atfork(nullptr, nullptr, in_child);
    (void)installed;
  }
  static void in_child() {
    for (PageFile* file : files().all) {
      if (!file->inherited_ && file->file_ >= 0) close(std::exchange(file->file_, -1));
    }
  }
};

std::shared_ptr<PageFile> PageFile::create() {
  if (!are_files_unlimited()) return nullptr;
  std::shared_ptr<PageFile> made(new PageFile);
  {
    std::lock_guard<std::mutex> lock(files().mutex);
    files().all.push_back(made.get());
  }
  PageFileForks::install();
  made->file_ = shared::create_memory_file("taeda_pages");
  struct stat status;
  if (made->file_ < 0 || ftruncate(made->file_, kFileBytes) != 0 ||
      fstat(made->file_, &status) != 0)
    return nullptr;
  made->device_ = status.st_dev;
  made->inode_ = status.st_ino;
  void* const state = map_anonymous(page_bytes(), MAP_SHARED);
  made->scratch_ = static_cast<char*>(map_anonymous(kRunBytes, MAP_PRIVATE | MAP_NORESERVE));
  if (state) made->state_ = new (state) std::atomic<int>(kEmpty);
  return state && made->scratch_ ? made : nullptr;
}

PageFile::~PageFile() {
  {
    std::lock_guard<std::mutex> lock(files().mutex);
    std::erase(files().all, this);
  }
  if (file_ >= 0) close(file_);
  if (state_) munmap(state_, page_bytes());
  if (scratch_) munmap(scratch_, kRunBytes);
}

void PageFile::set_inherited(bool inherited) {
  std::lock_guard<std::mutex> lock(files().mutex);
  inherited_ = inherited;
}

// f(address, bytes) for successive selected pages, at most kRunBytes of them; it allocates nothing.
template <class F>
bool PageFile::for_each_run(const PageRange& range, bool (*selected)(uint64_t), const F& f) const {
  const PageStates states;
  uint64_t buffer[kStates];
  if (file_ < 0 || !states.available()) return false;
  const size_t page = page_bytes();
  for (uintptr_t at = range.begin; at < range.end;) {
    const size_t n = std::min(kStates, (range.end - at) / page);
    if (!states.read(at, {buffer, n})) return false;
    for (size_t i = 0; i < n;) {
      size_t end = i;
      while (end < n && selected(buffer[end]) && (end - i) * page < kRunBytes) end++;
      if (end > i && !f(at + i * page, (end - i) * page)) return false;
      i = std::max(end, i + 1);
    }
    at += n * page;
  }
  return true;
}

PageFile::Count PageFile::count(std::span<const PageRange> ranges) const {
  Count count = {};
  const size_t page = page_bytes();
  for (const PageRange& range : ranges) {
    const auto add = [page](size_t& pages) {
      return [page, &pages](uintptr_t, size_t bytes) {
        pages += bytes / page;
        return true;
      };
    };
    if (!for_each_run(range, PageStates::exists, add(count.existing)) ||
        !for_each_run(range, PageStates::is_exclusive, add(count.exclusive)))
      return {};
  }
  return count;
}

bool PageFile::store(std::span<const PageRange> ranges) {
  int expected = kEmpty;
  if (file_ < 0 || !state_->compare_exchange_strong(expected, kStoring)) return false;
  const size_t bytes = count(ranges).existing * page_bytes();
  bool stored = bytes > 0 && shared::is_memory_available(bytes);
  for (size_t i = 0; stored && i < ranges.size(); i++) stored = write(ranges[i]);
  if (!stored) fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kFileBytes);
  *state_ = stored ? kStored : kFailed;
  return stored;
}

bool PageFile::write(const PageRange& range) {
  return for_each_run(range, PageStates::exists, [this](uintptr_t at, size_t bytes) {
    return write_all(file_, pointer(at), bytes, at);
  });
}

// The mapping is made elsewhere and takes the range's place in one step when it holds the same.
bool PageFile::map(const PageRange& range, size_t& most_copies) {
  if (file_ < 0 || !is_stored()) return false;
  void* const made = mmap(nullptr, range.bytes(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_NORESERVE, file_, static_cast<off_t>(range.begin));
  if (made == MAP_FAILED) return false;
  const auto copy = [&](uintptr_t at, size_t bytes) {
    const size_t page = page_bytes();
    if (!read_all(file_, scratch_, bytes, at)) return false;
    for (size_t i = 0; i < bytes; i += page) {
      if (std::memcmp(scratch_ + i, pointer(at + i), page) == 0) continue;
      if (most_copies == 0) return false;
      most_copies--;
      std::memcpy(static_cast<char*>(made) + (at - range.begin) + i, pointer(at + i), page);
    }
    return true;
  };
  // Pages that were never touched are zero here, and may be something else in the file.
  constexpr auto kAll = [](uint64_t) { return true; };
  if (for_each_run(range, kAll, copy) &&
      mremap(made, range.bytes(), range.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED,
             pointer(range.begin)) != MAP_FAILED)
    return true;
  munmap(made, range.bytes());
  return false;
}

std::vector<PageRange> PageFile::mapped(const MemoryMap& map) const {
  std::vector<PageRange> ranges;
  for (const Mapping& mapping : map.writable) {
    if (mapping.inode == inode_ && mapping.device == device_ &&
        mapping.offset == mapping.range.begin)
      ranges.push_back(mapping.range);
  }
  return ranges;
}

// The same for the process's copies.
template <class F>
bool PageFile::for_each_copy(const PageRange& range, const F& f) const {
  const PageStates states;
  PageRange runs[kRuns];
  if (file_ < 0 || !states.available()) return false;
  for (uintptr_t begin = range.begin; begin < range.end;) {
    const ssize_t n = states.find_copies(begin, range.end, runs);
    if (n < 0) return false;
    for (const PageRange& run : std::span(runs, static_cast<size_t>(n))) {
      for (uintptr_t at = run.begin; at < run.end; at += kRunBytes)
        if (!f(at, std::min(kRunBytes, run.end - at))) return false;
    }
  }
  return true;
}

ssize_t PageFile::drop_equal(const PageRange& range) {
  Dropping dropping;
  ssize_t dropped = 0;
  const auto compare = [&](uintptr_t at, size_t bytes) {
    const size_t page = page_bytes();
    if (!read_all(file_, scratch_, bytes, at)) return false;
    for (size_t i = 0; i < bytes; i += page) {
      if (std::memcmp(scratch_ + i, pointer(at + i), page) != 0) continue;
      if (!dropping.add(at + i, page)) return false;
      dropped++;
    }
    return true;
  };
  return for_each_copy(range, compare) && dropping.drop() ? dropped : -1;
}

}  // namespace taeda::data
