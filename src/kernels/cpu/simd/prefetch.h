// Asking memory for lines that will be needed soon and that the processor cannot foresee.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// Fetches the lines of [from, from + bytes), where reading may fault, into the first-level cache.
// Always inline: GCC takes a function that only prefetches for one without effects, and drops calls
// of it.
[[gnu::always_inline]] inline void prefetch_lines(const void* from, int64_t bytes) {
  const char* const first = static_cast<const char*>(from);
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(first + i);
}

// The same into the second-level cache: for kilobytes, which would push the first one's contents
// out.
[[gnu::always_inline]] inline void prefetch_block(const void* from, int64_t bytes) {
  const char* const first = static_cast<const char*>(from);
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(first + i, 0, 2);
}

}  // namespace taeda::cpu
