// The cache of pinned memory, as far as copies concern it; its users see memory.h.
#pragma once

#include "device/stream.h"

namespace taeda::cuda {

// `stream` uses the pinned block that `address` lies in, if it is one: once released, the block
// waits until the stream's work of now has ended.
void record_pinned_use(const void* address, Stream stream);

// Blocks that were released while work was captured wait for their streams from now on.
void release_pinned_after_capture();

}  // namespace taeda::cuda
