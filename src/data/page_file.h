// PageFile: the pages that forked workers have in common, in one file that all of them map.
//
// Reading a Python object writes its reference count, so a forked worker ends up with a copy of
// every page of the trainer's objects that it reads, though the counts go back and the copy holds
// what the page held. Only the system does not know. Here a range of memory is replaced by a
// private mapping of a file that holds the same bytes; a page that was written is dropped once it
// equals the file's, and the process reads the file's again, which all workers share.
//
// The file has no name, is as large as the address space, and holds each page at its address:
// forked processes have the same things at the same addresses. Only what was stored takes memory.
// The bytes of a process are the same before and after each function here, whether it succeeds or
// not; what differs from the file remains the process's own.
//
// store(), map() and drop_equal() need a process in which nothing else writes to the ranges
// meanwhile: no other thread, no signal handler, no system call under way. What becomes of them
// must not rely on madvise(MADV_DONTNEED) giving zeros, as allocators do that manage memory of
// their own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <span>

#include "data/memory_map.h"

namespace taeda::data {

class PageFile {
 public:
  // Null when the system has no such file. Workers inherit it by fork.
  static std::shared_ptr<PageFile> create();
  ~PageFile();
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  // Whether the children forked meanwhile keep it; others close it.
  void set_inherited(bool inherited);

  // Whether some process has stored its pages.
  bool is_stored() const { return *state_ == kStored; }
  bool is_being_stored() const { return *state_ == kStoring; }
  // Whether one could not.
  bool has_failed() const { return *state_ == kFailed; }
  // Copies the ranges' pages to the file, once in all processes: false when another one does or
  // did, or when there is no memory.
  bool store(std::span<const PageRange> ranges);
  // Replaces a range by a mapping of the file, in which pages that differ are copied. False when
  // that cannot be had, or when more than `most_copies` pages differ (which it counts down).
  bool map(const PageRange& range, size_t& most_copies);
  // The ranges that map() replaced and that nobody has replaced since.
  std::vector<PageRange> mapped(const MemoryMap& map) const;
  // Drops the process's copies of pages that equal the file's. -1 when that cannot be told.
  ssize_t drop_equal(const PageRange& range);

  struct Count {
    size_t existing, exclusive;  // pages
  };
  // What the ranges consist of; nothing when that cannot be told.
  Count count(std::span<const PageRange> ranges) const;

 private:
  friend struct PageFileForks;
  enum State { kEmpty, kStoring, kStored, kFailed };
  PageFile() = default;
  bool write(const PageRange& range);
  template <class F>
  bool for_each_copy(const PageRange& range, const F& f) const;
  template <class F>
  bool for_each_run(const PageRange& range, bool (*selected)(uint64_t), const F& f) const;

  int file_ = -1;
  std::atomic<int>* state_ = nullptr;  // shared by all processes
  char* scratch_ = nullptr;            // kRunBytes, not on the heap, which may be what is replaced
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool inherited_ = false;
};

}  // namespace taeda::data
