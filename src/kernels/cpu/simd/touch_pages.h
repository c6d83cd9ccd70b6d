// touch_pages: before a scatter into fresh memory. The system clears a page when it is first
// touched; a scatter would touch all of them at once, within one block between two looks for
// interrupts.
#pragma once

#include <cstdint>

#include "base/interrupt.h"

namespace taeda::cpu {

// Writes to each page of memory whose values are not needed, looking for interrupts in between.
inline void touch_pages(void* memory, int64_t bytes) {
  constexpr int64_t kPage = 4096, kBetweenLooks = int64_t{8} << 20;
  for (int64_t at = 0; at < bytes; at += kPage) {
    static_cast<volatile char*>(memory)[at] = 0;
    if (at % kBetweenLooks == 0) check_interrupt();
  }
}

}  // namespace taeda::cpu
