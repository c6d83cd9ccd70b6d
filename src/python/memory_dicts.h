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
// The same by PyTorch's names for CUDA devices: {"allocation": {"all": {...}, "small_pool": {...},
// "large_pool": {...}}, ...}.
PyRef cuda_stats_dict(const MemoryStats& stats);
PyRef level_dict(const MemoryStats::Level& level);
PyRef levels_dict(const MemoryStats::Levels& levels);
// [{"filename": ..., "line": ..., "name": ...}, ...]; null: an empty list.
PyRef frames_list(const MemoryContext* context);
// A list of events, the oldest first.
PyRef history_list(const std::vector<MemoryEvent>& events);
// A list of segments, each with its blocks.
PyRef snapshot_list(const std::vector<SegmentInfo>& segments);
void set_int(PyObject* dict, const char* key, int64_t value);

}  // namespace taeda::python
