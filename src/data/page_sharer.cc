#include "data/page_sharer.h"

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "base/block_signals.h"

namespace taeda::data {
namespace {

constexpr int64_t kFaultsBeforeStored = 4096;  // 16 MiB of small pages
constexpr int64_t kFaultsBetweenPasses = 256;  // 1 MiB
// Where nothing else limits passes, and all of them: looking through so much takes as long as
// comparing what was found.
constexpr int64_t kFaultsBetweenPassesAnyway = 512;
constexpr size_t kPartBetweenPasses = 64;
constexpr int64_t kLongestBackOff = 32;
constexpr int64_t kPartUseful = 8;  // of the faults, that make a pass worth its time
constexpr size_t kPartWorthStoring = 4;
constexpr size_t kMostRanges = 8192;  // the system has a limit of 65,530 for a process
constexpr double kSecondsPerPage = 4e-6;
constexpr double kMostOfTime = 0.1, kMostOfTimeInPasses = 0.04;

double seconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int64_t page_faults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

struct Status {
  int threads = 0;
  int64_t locked = 0;
};
Status process_status() {
  Status status;
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Threads:")) status.threads = std::atoi(line.c_str() + 8);
    if (line.starts_with("VmLck:")) status.locked = std::atoll(line.c_str() + 6);
  }
  return status;
}

// Whether the kernel may write to memory while no system call is under way. An io_uring is seen by
// its descriptor, older asynchronous requests by the mapping of their queue.
bool has_asynchronous_io(const MemoryMap& map) {
  if (map.has_request_queue) return true;
  DIR* const handles = opendir("/proc/self/fd");
  if (!handles) return true;
  bool found = false;
  while (const dirent* entry = readdir(handles)) {
    char target[64];
    const ssize_t n = readlinkat(dirfd(handles), entry->d_name, target, sizeof target);
    found |= n > 0 && std::string_view(target, static_cast<size_t>(n)).find("io_uring") !=
                          std::string_view::npos;
  }
  closedir(handles);
  return found;
}

// Whether malloc is glibc's own: another one may manage what brk() gives.
bool is_system_malloc() {
  Dl_info allocator, library;
  void* const libc = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  void* const function = dlsym(RTLD_DEFAULT, "malloc");
  return libc && function && dladdr(libc, &library) && dladdr(function, &allocator) &&
         library.dli_fbase == allocator.dli_fbase;
}

// Whether this thread's stack or its descriptor, which the kernel writes to, are in the range.
bool is_thread_in(const PageRange& range) {
  const int local = 0;
  return range.contains(&local) || range.contains(&errno) ||
         range.contains(reinterpret_cast<const void*>(pthread_self()));
}

}  // namespace

PageSharer::PageSharer(std::shared_ptr<PageFile> file, size_t workers, int own_threads,
                       Preference preference, Arenas arenas)
    : file_(std::move(file)),
      workers_(workers),
      own_threads_(own_threads),
      arenas_(arenas),
      prefers_memory_(preference == kMemory),
      faults_between_(kFaultsBeforeStored),
      between_passes_(kFaultsBetweenPasses) {
  file_->set_inherited(false);  // a worker's children are no workers
}

bool PageSharer::after_batch() {
  if (looked_at_ == 0) {  // what came before the first batch is no sign of what batches take
    faults_ = page_faults();
    looked_at_ = seconds();
  }
  if (off_ || page_faults() - faults_ < faults_between_) return false;
  const double begin = seconds();
  const bool rests = (begin - looked_at_) * kMostOfTimeInPasses < duration_;
  if (rests && !(prefers_memory_ && useful_)) return false;
  look();
  faults_ = page_faults();
  looked_at_ = seconds();
  duration_ = looked_at_ - begin;
  return true;
}

void PageSharer::look() {
  const Status status = process_status();
  const MemoryMap map = read_memory_map();
  if (status.threads > own_threads_ || status.locked > 0 || has_asynchronous_io(map)) {
    counts_.skipped++;
    return;
  }
  if (mapped_) return drop(map);
  const std::vector<PageRange> ranges = candidates(map);
  const bool stored = file_->is_stored();
  if (file_->is_being_stored()) return look_again();
  if (!stored && !is_worth_storing(ranges)) return;
  const BlockSignals blocked;
  if (stored || file_->store(ranges))
    map_stored(ranges);
  else if (file_->has_failed())
    off_ = true;
  else
    look_again();
}

void PageSharer::look_again() { faults_between_ = 0; }

PageFile::Count PageSharer::counted(const std::vector<PageRange>& ranges) {
  const PageFile::Count count = file_->count(ranges);
  prefers_memory_ |= count.existing * PageStates::page_bytes() * workers_ > kMostCopiedBytes;
  if (prefers_memory_)
    between_passes_ = std::max(kFaultsBetweenPassesAnyway,
                               static_cast<int64_t>(count.existing / kPartBetweenPasses));
  return count;
}

bool PageSharer::is_worth_storing(const std::vector<PageRange>& ranges) {
  const PageFile::Count count = counted(ranges);
  const double growth =
      static_cast<double>(std::min(count.exclusive - std::min(exclusive_, count.exclusive),
                                   static_cast<size_t>(page_faults() - faults_)));
  exclusive_ = count.exclusive;
  if (!prefers_memory_) {
    off_ = growth * kSecondsPerPage > (seconds() - looked_at_) * kMostOfTime;
    // Of what is read again nothing is seen once most of it is exclusive.
    if (off_ || count.exclusive * 2 > count.existing) return false;
  }
  return count.exclusive * workers_ * kPartWorthStoring >= count.existing;
}

std::vector<PageRange> PageSharer::candidates(const MemoryMap& map) const {
  const bool heap = is_system_malloc();
  std::vector<PageRange> wanted = arenas_(), anonymous;
  for (const Mapping& mapping : map.writable) {
    if (mapping.inode != 0) continue;
    anonymous.push_back(mapping.range);
    if (heap && mapping.heap) wanted.push_back(mapping.range);
  }
  std::vector<PageRange> ranges = intersect(std::move(wanted), std::move(anonymous));
  std::erase_if(ranges, is_thread_in);
  if (ranges.size() > kMostRanges) ranges.clear();
  return ranges;
}

// Memory that differs in the workers is not worth mapping: its copies would be new.
void PageSharer::map_stored(const std::vector<PageRange>& ranges) {
  const PageFile::Count count = counted(ranges);
  size_t most_copies = count.exclusive + count.existing / kPartWorthStoring;
  for (const PageRange& range : ranges) {
    if (!file_->map(range, most_copies)) break;
    mapped_ = true;
  }
  off_ = !mapped_;
  faults_between_ = between_passes_;
}

void PageSharer::drop(const MemoryMap& map) {
  const std::vector<PageRange> ranges = file_->mapped(map);
  const BlockSignals blocked;
  int64_t dropped = 0;
  for (const PageRange& range : ranges) {
    const ssize_t here = file_->drop_equal(range);
    if (here < 0) off_ = true;
    dropped += std::max<ssize_t>(here, 0);
  }
  counts_.dropped += dropped;
  counts_.passes++;
  // Faults may be of other memory: then it looks less often.
  useful_ = dropped * kPartUseful >= faults_between_;
  faults_between_ =
      useful_ ? between_passes_ : std::min(faults_between_ * 2, between_passes_ * kLongestBackOff);
}

}  // namespace taeda::data
