// SegmentTable: all segments that this process maps, and how many storages it has on each block.
// The one object of its kind is never destroyed. Its mutex is held over a fork, around which it
// makes the child a holder of all that the parent holds.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/shared/block_pool.h"
#include "core/shared/segment.h"

namespace taeda::shared {

struct Mapped {
  std::unique_ptr<Segment> segment;
  std::unique_ptr<BlockPool> pool;  // of a segment that this process has made
  std::vector<uint32_t> counts;     // by block: this process's storages
  uint32_t held = 0;                // blocks with a count
  int child_slot = -1;              // while a fork is under way
  // Of another process: when its descriptor came last, and whether a tensor of it came since.
  std::chrono::steady_clock::time_point arrived{};
  bool used = false;

  bool holds(uint32_t block) const { return block < counts.size() && counts[block] > 0; }
};

// What a storage holds: one count of a block.
struct Hold {
  Mapped* mapped;
  uint32_t block;
};

class SegmentTable {
 public:
  static SegmentTable& instance();
  std::mutex& mutex() { return mutex_; }

  // The rest wants the mutex.
  Mapped* find(const SegmentId& id);
  Mapped& map(int descriptor);
  // A block of at least so many bytes with a count of 1. OutOfMemoryError.
  std::pair<Mapped*, uint32_t> allocate(size_t bytes);
  // Gives this process a number in the segment. RuntimeError when all are taken.
  void join(Mapped& mapped);
  void retain(Mapped& mapped, uint32_t block);
  // One storage less; the last of all processes' frees the block.
  void release(Mapped& mapped, uint32_t block);
  void drop_message(Mapped& mapped, uint32_t block, uint64_t generation);
  const std::vector<std::unique_ptr<Mapped>>& all() const { return segments_; }

  // These take the mutex, and give it back.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  struct Inherited {
    SegmentId segment;
    uint32_t block;
    uint64_t generation;
  };

  struct Child {  // of a fork that may have failed
    // Ends when it is a holder or will never be; of one that got no number in some segment, when it
    // ends, and what it has inherited there is held for it by messages.
    int pipe;
    std::vector<std::pair<SegmentId, int>> slots;
    std::vector<Inherited> inherited;
  };

  SegmentTable() = default;
  std::pair<Mapped*, uint32_t> allocate_from_segments(size_t bytes);
  Mapped& add_own(size_t bytes);
  void reclaim();
  void limit_warm_bytes();
  void free_unused(Mapped& mapped, uint32_t block);
  void forget_dead(Mapped& mapped);
  bool is_idle(const Mapped& mapped) const;
  void unmap_idle();
  void close_descriptors();

  void hold_for_child(Mapped& mapped);
  void forget_ended_children();
  void forget(const Child& child);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Mapped>> segments_;
  std::map<SegmentId, Mapped*> by_id_;
  int own_segments_ = 0;
  std::chrono::steady_clock::time_point last_look_{};
  std::vector<Child> children_;
  int child_pipe_[2] = {-1, -1};
  std::vector<Inherited> inherited_;  // by the child that will be forked now
  int life_ = -1;  // of a child that got no number: the end of a pipe that closes with it
};

}  // namespace taeda::shared
