// PageSharer: keeps a forked worker's private memory small, however many Python objects it reads.
//
// The worker calls after_batch() between batches. At first it only counts its page faults; after 16
// MiB of them it looks how much of the candidates is its own. Once that is a quarter of them in all
// workers together, one of them stores the pages for all (page_file.h). From then on each drops
// what equals the stored pages whenever it has taken some faults more.
//
// A page that is read, copied and dropped again costs about 5 microseconds each time, of which the
// fault is half. A worker that loads samples of a millisecond does not notice; one that does
// nothing but read small objects takes six times as long. Where all workers' copies of all there is
// would take less than kMostCopiedBytes, speed matters more (kSpeed): a worker that would spend
// more than a tenth of its time on that never starts, and passes keep to a 25th of it.
//
// The candidates are memory whose manager is known and does not rely on what madvise() gives: the
// arenas of Python's allocator, and the heap of glibc's. Nothing happens while the process has
// threads other than its own, asynchronous input or output, or locked memory.
// Everything here belongs to one thread.
#pragma once

#include <memory>

#include "data/page_file.h"

namespace taeda::data {

struct PageSharing {
  int64_t dropped = 0;  // pages
  int64_t passes = 0;   // in which they were
  int64_t skipped = 0;  // looks that had to be left out, because of a thread for example
};

class PageSharer {
 public:
  // kMemory: whatever it costs, also where there is little to copy.
  enum Preference { kSpeed, kMemory };
  static constexpr size_t kMostCopiedBytes = size_t{128} << 20;
  // The arenas of Python's allocator at this moment.
  using Arenas = std::vector<PageRange> (*)();

  // `own_threads` of the process, the caller's among them, touch no Python objects meanwhile.
  PageSharer(std::shared_ptr<PageFile> file, size_t workers, int own_threads, Preference preference,
             Arenas arenas);

  // Whether it looked.
  bool after_batch();
  const PageSharing& counts() const { return counts_; }

 private:
  void look();
  void look_again();  // at the next batch: another worker is storing, most likely at this moment
  // What there is, and how much it matters.
  PageFile::Count counted(const std::vector<PageRange>& ranges);
  bool is_worth_storing(const std::vector<PageRange>& ranges);
  std::vector<PageRange> candidates(const MemoryMap& map) const;
  void map_stored(const std::vector<PageRange>& ranges);
  void drop(const MemoryMap& map);

  std::shared_ptr<PageFile> file_;
  const size_t workers_;
  const int own_threads_;
  const Arenas arenas_;
  bool prefers_memory_;
  int64_t faults_ = 0;      // when it looked last
  int64_t faults_between_;  // before it looks again
  int64_t between_passes_;  // the same where they are useful
  double looked_at_ = 0;    // seconds; 0: before the first batch
  double duration_ = 0;     // of that look
  size_t exclusive_ = 0;    // pages, then
  bool mapped_ = false, off_ = false;
  bool useful_ = true;  // the last pass
  PageSharing counts_;
};

}  // namespace taeda::data
