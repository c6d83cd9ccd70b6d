// What allocators say about themselves, as Python sees it: the CPU's (memory.cc) and a device's
// (cuda.cc).
#pragma once

#include <vector>

#include "core/memory_stats.h"
#include "python/common.h"

namespace taeda::python {

// {"allocation": {"current": ..., "peak": ..., "allocated": ..., "freed": ...}, ..., "num_ooms":
// ...}
PyRef stats_dict(const MemoryStats& stats);
// A list of segments, each with its blocks.
PyRef snapshot_list(const std::vector<SegmentInfo>& segments);
void set_int(PyObject* dict, const char* key, int64_t value);

}  // namespace taeda::python
