// What memory there is to share: asked before pages are made, since the system would rather kill a
// process than refuse them.
#pragma once

#include <cstddef>

namespace taeda::shared {

// OutOfMemoryError when neither the machine nor this process's cgroups have so many bytes left.
// Small amounts are not looked at, some 100 microseconds otherwise.
void check_memory(size_t bytes);
// The same as an answer.
bool is_memory_available(size_t bytes);

}  // namespace taeda::shared
