// SharedArea: memory that a trainer and one of its data-loading workers share.
//
// An anonymous file, large and sparse, mapped by both: a forked worker inherits it, another one
// opens it by its handle. It has no name, so nothing remains of it once nobody maps it, however its
// users ended. Pages come with commit(), never by touching them: where there is no memory left
// commit() says so, and nobody meets SIGBUS.
//
// The area consists of blocks that count their holders: storages and messages in either process. A
// process that forks while it holds blocks (a data set that keeps batches of another loader) gives
// its child copies of them at the same addresses, and the child does not count. Of the rest only
// the first page can be touched there, which reads as zeros. All functions may be called from any
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>

#include "taeda/storage.h"

namespace taeda::data {

// What stands before a block's bytes.
struct alignas(64) Block {
  std::atomic<uint32_t> holders;  // 0: free
  bool sent;                      // the other process may know it
  uint64_t bytes;                 // without this header

  char* data() { return reinterpret_cast<char*>(this + 1); }
};

class SharedArea : public std::enable_shared_from_this<SharedArea> {
 public:
  // `bytes` of address space, or less where that cannot be had. RuntimeError when there is no
  // descriptor or no memory left.
  static std::shared_ptr<SharedArea> create(size_t bytes);
  // The area of a handle, which stays the caller's.
  static std::shared_ptr<SharedArea> open(int handle);
  ~SharedArea();
  SharedArea(const SharedArea&) = delete;
  SharedArea& operator=(const SharedArea&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int handle() const { return handle_; }

  // Gets memory for a range, false when there is none; gives that of its whole pages back.
  bool commit(size_t offset, size_t bytes);
  void decommit(size_t offset, size_t bytes);

  // Whether children get the area itself instead of copies: while its worker is being forked.
  void set_inherited(bool inherited);
  // No more blocks will come: all memory goes back but that of blocks that are held, and the file
  // is closed.
  void retire();

  // A storage on bytes of a block, which takes over one of its holders.
  Ref<Storage> storage(Block* block, char* begin, int64_t nbytes);
  // Whether this process was forked from a user of the area: it has copies of what that held.
  bool is_copy() const { return private_; }
  // The block of such a storage, null for others.
  Block* block_of(const Storage& storage) const;
  // What storages of this process hold, in all areas.
  static size_t held_blocks();
  static size_t held_bytes();

 private:
  friend struct ForkHandlers;
  SharedArea() = default;
  void map();
  void hold(Block* block);
  void drop(Block* block);
  static void release(void* held);
  void count(int change);
  void make_private(bool parent_counts);

  int handle_ = -1;
  char* data_ = nullptr;  // of what is mapped now
  size_t bytes_ = 0;
  bool inherited_ = false;
  bool private_ = false;  // this process has copies only
  std::unordered_multiset<Block*> held_;
};

}  // namespace taeda::data
