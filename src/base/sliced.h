// Memory of so many elements that filling it takes long, filled in slices between which interrupts
// are looked for: the system clears the pages that are first touched.
#pragma once

#include <algorithm>
#include <vector>

#include "base/interrupt.h"

namespace taeda {

// Writes to each page of memory whose values are not needed: before a scatter, which would touch
// all pages at once, within one block between two looks.
inline void touch_pages(void* memory, int64_t bytes) {
  constexpr int64_t kPage = 4096, kBetweenLooks = int64_t{8} << 20;
  for (int64_t at = 0; at < bytes; at += kPage) {
    static_cast<volatile char*>(memory)[at] = 0;
    if (at % kBetweenLooks == 0) check_interrupt();
  }
}

template <class T>
void sliced_fill(T* to, int64_t n, T value) {
  in_slices(n, [=](int64_t begin, int64_t end) { std::fill(to + begin, to + end, value); });
}

template <class T>
std::vector<T> sliced_zeros(int64_t n) {
  std::vector<T> all;
  all.reserve(static_cast<size_t>(n));
  in_slices(n, [&](int64_t, int64_t end) { all.resize(static_cast<size_t>(end)); });
  return all;
}

template <class T>
std::vector<T> sliced_copy(const T* from, int64_t n) {
  std::vector<T> all;
  all.reserve(static_cast<size_t>(n));
  in_slices(n,
            [&](int64_t begin, int64_t end) { all.insert(all.end(), from + begin, from + end); });
  return all;
}

}  // namespace taeda
