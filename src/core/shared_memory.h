// Storages in memory that processes share: an anonymous file, mapped by each of them.
//
// A forked child shares it as it is. Another process gets it through the file's handle, sent over a
// local socket. The memory goes when nobody maps it and no handle is open.
#pragma once

#include "taeda/storage.h"

namespace taeda {

// Moves a CPU storage's contents to shared memory; nothing happens when they are there already.
// RuntimeError when memory that others know would have to move.
void share_memory(Storage& storage);
// The handle of a shared storage's file, owned by the storage; -1 for one that is not shared.
int shared_handle(const Storage& storage);
// A storage on the file of `handle`, which stays the caller's. RuntimeError when it is smaller than
// `nbytes`.
Ref<Storage> open_shared(int handle, int64_t nbytes);

}  // namespace taeda
