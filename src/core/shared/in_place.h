// Memory that becomes shared where it is: a block of the CPU allocator whose pages are replaced by
// those of a segment, at the same addresses. So it can be sent although others know its address (an
// array of NumPy's), and although a kernel works on it in another thread.
//
// The contents are copied first. Where the system has userfaultfd, threads that write to the memory
// meanwhile wait until the pages are replaced, and no write is lost; elsewhere one that falls
// between the two is. System calls that write there wait only where the process may stop them, see
// write_barrier.h. A block that is given back to the allocator gets private pages again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/shared/table.h"

namespace taeda::shared {

// Whether `nbytes` at this address are whole pages of a block of the allocator's.
bool can_share_in_place(const void* data, int64_t nbytes);
// False, with everything as it was, where the system refuses, and where 16,384 blocks of this
// process are shared so, since each takes mappings of the process's. Otherwise the hold is kept
// until the allocator gets the block back.
bool share_in_place(void* data, int64_t nbytes, const Hold& hold);
// Another number than 16,384, for tests; returns the one before.
size_t set_most_in_place(size_t blocks);
// The hold of memory that was shared so.
std::optional<Hold> in_place_hold(const void* data);

}  // namespace taeda::shared
