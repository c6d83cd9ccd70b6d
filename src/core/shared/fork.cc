// What happens to shared memory in a fork. The child has storages on all blocks that its parent
// has, so it must be a holder of them before the parent can let go of one. It cannot do that itself
// in time. Before the fork the parent therefore sets the bits of a number that it reserves for the
// child; the child then says that the number is its own. Whether there is a child at all, the
// parent learns from a pipe: a fork may fail, and a child be killed before it has said a word.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "core/shared/table.h"

namespace taeda::shared {
namespace {

void close_end(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

// When the library is loaded: what is registered later (base/detached_call.cc) waits for threads
// before the mutex is taken, which they may need.
[[maybe_unused]] const int registered =
    pthread_atfork([] { SegmentTable::instance().before_fork(); },
                   [] { SegmentTable::instance().after_fork_in_parent(); },
                   [] { SegmentTable::instance().after_fork_in_child(); });

}  // namespace

void SegmentTable::before_fork() {
  mutex_.lock();
  if (segments_.empty()) return;
  forget_ended_children();
  // Without descriptors a failed fork's number stays taken as long as the segment exists, and what
  // a child without a number inherits stays.
  if (pipe2(child_pipe_, O_CLOEXEC) != 0) child_pipe_[0] = child_pipe_[1] = -1;
  for (const auto& mapped : segments_) hold_for_child(*mapped);
}

void SegmentTable::hold_for_child(Mapped& mapped) {
  Segment& segment = *mapped.segment;
  mapped.child_slot = segment.reserve_for_child();
  if (mapped.child_slot < 0) {
    forget_dead(mapped);
    mapped.child_slot = segment.reserve_for_child();
  }
  for (uint32_t block = 0; block < mapped.counts.size(); block++) {
    if (mapped.counts[block] == 0) continue;
    // Without a number a message that nobody receives keeps the block for the child.
    if (mapped.child_slot >= 0)
      add_holder(segment.block(block), mapped.child_slot);
    else if (add_message(segment.block(block)))
      inherited_.push_back({segment.id(), block, segment.block(block).generation.load()});
  }
}

void SegmentTable::after_fork_in_parent() {
  if (child_pipe_[0] >= 0) {
    Child child{child_pipe_[0], {}, std::move(inherited_)};
    for (const auto& mapped : segments_)
      if (mapped->child_slot >= 0)
        child.slots.emplace_back(mapped->segment->id(), mapped->child_slot);
    children_.push_back(std::move(child));
    child_pipe_[0] = -1;
    close_end(child_pipe_[1]);
  }
  inherited_.clear();
  mutex_.unlock();
}

// It allocates from segments of its own: the lists of what is free in its parent's are the
// parent's.
void SegmentTable::after_fork_in_child() {
  for (const auto& mapped : segments_) {
    mapped->pool.reset();
    mapped->segment->become_child(mapped->child_slot);
  }
  own_segments_ = 0;
  for (Child& other : children_) close_end(other.pipe);
  children_.clear();
  close_end(child_pipe_[0]);
  // Its children have an inherited end of it too, as they have the blocks.
  if (!inherited_.empty() && life_ < 0) std::swap(life_, child_pipe_[1]);
  close_end(child_pipe_[1]);
  inherited_.clear();
  mutex_.unlock();
}

// Frees the numbers of children that have never come to be, and what children without a number have
// left when they ended.
void SegmentTable::forget_ended_children() {
  std::erase_if(children_, [&](Child& child) {
    pollfd end = {child.pipe, POLLIN, 0};
    if (poll(&end, 1, 0) == 0) return false;
    forget(child);
    close_end(child.pipe);
    return true;
  });
}

void SegmentTable::forget(const Child& child) {
  for (const auto& [id, slot] : child.slots) {
    Mapped* const mapped = find(id);
    if (!mapped || !mapped->segment->is_reserved(slot)) continue;
    const uint32_t n = mapped->segment->blocks_used().load();
    for (uint32_t block = 0; block < n; block++) {
      remove_holder(mapped->segment->block(block), slot);
      free_unused(*mapped, block);
    }
    mapped->segment->leave(slot);
  }
  for (const Inherited& inherited : child.inherited)
    if (Mapped* const mapped = find(inherited.segment))
      drop_message(*mapped, inherited.block, inherited.generation);
}

}  // namespace taeda::shared
