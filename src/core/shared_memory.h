// Storages in memory that processes share.
//
// Their memory is a block of a segment (core/shared/segment.h), of which each process has few, so
// that a thousand tensors cost no more descriptors than one. A forked child shares what its parent
// holds. Another process gets a block by its name, in a message, and the segment by its descriptor,
// once. A block is free again when no process has a storage on it and no message is under way;
// memory held by processes that were killed comes back when there is need of it. The design is in
// docs/notes/multiprocessing.md.
//
// All functions may be called from any thread.
#pragma once

#include <array>
#include <cstdint>

#include "taeda/storage.h"

namespace taeda {

// Makes a CPU storage's memory shared; nothing happens when it is already. Memory of whole pages of
// our allocator can be shared where it is (core/shared/in_place.h), which is done where others know
// its address, or where that is preferred since other threads may be writing to it. Other memory
// moves: RuntimeError when others know its address. OutOfMemoryError when there is no memory.
void share_memory(Storage& storage, bool prefer_in_place = false);
// A storage in shared memory from the start, with whatever is in it.
Ref<Storage> allocate_shared(int64_t nbytes);
bool is_shared(const Storage& storage);

// What a message says of a storage: plain bytes, which may be sent in any way.
struct SharedName {
  std::array<uint64_t, 2> segment;
  uint64_t generation;  // of the block: how often it was used before
  int64_t nbytes;
  uint32_t block;
  // Where the segment's file is while the process that made it lives.
  int32_t creator, creator_descriptor;
  uint32_t ticket;  // of the message, see core/shared/segment.h
};

// A name of a shared storage, for one message. It keeps the memory until it is received or dropped,
// also when the sender ends. RuntimeError for a storage that is not shared, and for a million
// messages that nobody has received.
SharedName send_shared(const Storage& storage);
// Where the message is, so that its memory comes back when it is lost there: with this process
// until it is sent (kWithSender), or from now on in the Unix socket with this inode, which exists
// in that network namespace (base/unix_sockets.h); 0: somewhere else. Wants to be said before it is
// sent. Who takes it out of the socket says kReceived before the socket can be closed: from then on
// only receive_shared() takes the message, however long after.
constexpr uint32_t kWithSender = ~0u, kReceived = ~0u - 1;
void set_message_location(const SharedName& name, uint32_t location, uint64_t network);
// The message will not be sent, or will not be received. Nothing happens when it was received, or
// taken out of its socket.
void drop_shared(const SharedName& name);
// Whether the message may still be received or dropped; false where that is not known.
bool is_under_way(const SharedName& name);
// The storage that a message names, once. RuntimeError when its segment is not mapped here, and
// when the message was received before.
Ref<Storage> receive_shared(const SharedName& name);

// Whether this process maps the segment that a name is of.
bool is_mapped(const SharedName& name);
// The descriptor of its file, which stays the segment's; -1 when this process has closed it.
int segment_descriptor(const SharedName& name);
// Maps the segment in a file; the descriptor becomes the segment's, or is closed when there is no
// need of it, or on failure. RuntimeError when the file is no segment.
void map_segment(int descriptor);

struct SharedMemoryStats {
  int64_t segments, own_segments;  // mapped
  int64_t descriptors;
  int64_t blocks;  // that this process has storages on
  int64_t address_space_bytes;
};
SharedMemoryStats shared_memory_stats();

}  // namespace taeda
