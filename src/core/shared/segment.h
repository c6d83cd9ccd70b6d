// Segment: this process's mapping of a piece of memory that processes share.
//
// It is an anonymous file (memfd) whose size is sealed: it has no name that could stay behind, the
// system frees it when the last process that maps it is gone, however that went, and nobody can cut
// it short under its readers. The file is sparse: pages exist once they were populated. It begins
// with a header (who created it, which processes use it), then come the headers of its blocks, then
// their memory. One file descriptor a segment: the creator's, and the receivers' while they have
// few.
//
// Not safe for threads: shared_memory.cc calls all of it under its mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/shared/blocks.h"

namespace taeda::shared {

using SegmentId = std::array<uint64_t, 2>;  // random

struct SegmentHeader;  // the first bytes of the file

class Segment {
 public:
  // A new segment with room for blocks of `bytes` together; null when the address space has none
  // for it. RuntimeError when there is no descriptor left.
  static std::unique_ptr<Segment> create(size_t bytes);
  // The segment that another process has made, whose descriptor becomes the object's. RuntimeError
  // when it is none, when it cannot be mapped, and when too many processes use it.
  static std::unique_ptr<Segment> map(int descriptor);
  // The id of the segment in a file; false when the file is none.
  static bool read_id(int descriptor, SegmentId& id);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  SegmentId id() const { return id_; }
  int slot() const { return slot_; }  // this process's number in the segment; -1: none was free
  int descriptor() const { return descriptor_; }
  void close_descriptor();
  // Where other processes find the file while its creator lives: a process and its descriptor.
  int creator() const;
  int creator_descriptor() const;
  bool creator_runs() const;

  char* base() const { return base_; }
  size_t size() const { return size_; }
  size_t memory_offset() const { return memory_offset_; }
  size_t memory_bytes() const { return size_ - memory_offset_; }
  uint32_t most_blocks() const { return most_blocks_; }
  BlockHeader& block(uint32_t index) const;
  // Headers 0 .. n have been in use; it grows.
  std::atomic<uint32_t>& blocks_used() const;
  // Bytes of pages that exist though no block uses them, and how many there may be: a process that
  // frees a block gives its pages to the system beyond that.
  std::atomic<int64_t>& warm_bytes() const;
  std::atomic<int64_t>& most_warm_bytes() const;
  // How many blocks have been freed, and the indices of the last kHints of them.
  static constexpr uint32_t kHints = 1024;
  std::atomic<uint64_t>& freed() const;
  std::span<std::atomic<uint32_t>, kHints> hints() const;

  // A message that names a block has a ticket, where one is free (0: none). Who receives the
  // message redeems it, or else who sent it and knows that nobody will: true for the one that comes
  // first, who takes the message off the block's count. The ticket says where the message is, so
  // that others may find out too (forget_dead, drop_lost_messages): kUnknownLocation at first.
  uint32_t issue_ticket(uint32_t block) const;
  bool redeem_ticket(uint32_t ticket) const;
  bool is_issued(uint32_t ticket) const;
  bool is_received(uint32_t ticket) const;  // and not redeemed
  static constexpr uint32_t kUnknownLocation = 0, kWithSender = ~0u, kReceived = ~0u - 1;
  // The inode of the Unix socket that the message will be read from, which exists in this network
  // namespace; or one of the above. By who may redeem the ticket: before the message is sent, and
  // with kReceived when it has been taken out of the socket and its ticket is to be redeemed later.
  void set_location(uint32_t ticket, uint32_t location, uint64_t network) const;

  // Makes pages exist, so that writing to them cannot fail. OutOfMemoryError.
  void populate(size_t offset, size_t bytes) const;
  // Gives whole pages back to the system; they read as zero afterwards.
  void discard(size_t offset, size_t bytes) const;

  // Takes a free number for this process. False when all are taken by running processes.
  bool join();
  // A number for a child that will be forked now; it has none of the blocks yet. -1: none is free.
  int reserve_for_child();
  void become_child(int slot);  // in the child
  // Gives up a number, of which no block may have the bit.
  void leave(int slot);
  bool is_reserved(int slot) const;
  // Takes the bits of processes that no longer run from all blocks, and the messages that they had
  // not sent, and calls free_unused for each; one process at a time does that.
  template <class FreeUnused>
  void forget_dead(const FreeUnused& free_unused);
  // The same of messages that are in no socket any more.
  template <class FreeUnused>
  void drop_lost_messages(const FreeUnused& free_unused);

 private:
  Segment() = default;
  void map_file(size_t size);
  int take_slot(uint64_t identity);
  std::vector<int> dead_slots() const;
  struct Message {
    uint32_t ticket, block;
  };
  std::vector<Message> unsent_messages(const std::vector<int>& senders) const;
  std::vector<Message> lost_messages() const;
  template <class FreeUnused>
  void drop(const std::vector<Message>& messages, const FreeUnused& free_unused);
  bool begin_sweep();
  void end_sweep();

  SegmentHeader* header_ = nullptr;
  char* base_ = nullptr;
  size_t size_ = 0, memory_offset_ = 0;
  SegmentId id_{};
  uint32_t most_blocks_ = 0;
  int descriptor_ = -1;
  int slot_ = -1;
};

template <class FreeUnused>
void Segment::forget_dead(const FreeUnused& free_unused) {
  if (!begin_sweep()) return;
  const std::vector<int> dead = dead_slots();
  std::array<uint64_t, kHolderWords> bits{};
  for (const int slot : dead) bits[static_cast<size_t>(slot / 64)] |= uint64_t{1} << (slot % 64);
  const uint32_t n = dead.empty() ? 0 : blocks_used().load();
  for (uint32_t i = 0; i < n; i++) {
    remove_holders(block(i), bits);
    free_unused(i);
  }
  drop(unsent_messages(dead), free_unused);
  for (const int slot : dead) leave(slot);
  end_sweep();
}

template <class FreeUnused>
void Segment::drop_lost_messages(const FreeUnused& free_unused) {
  drop(lost_messages(), free_unused);
}

// A message that has not been received keeps its block, so that the block's generation is its own.
template <class FreeUnused>
void Segment::drop(const std::vector<Message>& messages, const FreeUnused& free_unused) {
  for (const auto& [ticket, index] : messages) {
    const uint64_t generation = block(index).generation.load();
    if (redeem_ticket(ticket) && remove_message(block(index), generation)) free_unused(index);
  }
}

}  // namespace taeda::shared
