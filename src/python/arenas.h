// The memory that Python's allocator has got for small objects, known exactly: whoever manages a
// process's other mappings is unknown.
#pragma once

#include <vector>

#include "data/memory_map.h"

namespace taeda::python {

// From now on keeps a list of the arenas. Those that exist already are not in it.
void watch_arenas();

// The list; empty when another allocator of arenas has been set meanwhile.
std::vector<data::PageRange> arenas();

}  // namespace taeda::python
