// How a product's tiles are dealt out to threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/parallel.h"

namespace taeda::cpu {

inline int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

// Calls f(row, row_end, panel, panel_end) for parts of m rows, in strips of `strip_rows`, and of
// the panels of B's columns; a strip of all columns takes `strip_work` multiplications.
template <class F>
void for_parts(bool parallel, int64_t m, int64_t strip_rows, int64_t panels, int64_t strip_work,
               const F& f) {
  if (!parallel) return f(0, m, 0, panels);
  constexpr int64_t kEnough = 8;
  constexpr int64_t kTaskWork = int64_t{1} << 20;  // multiplications that are worth a task
  const int64_t strips = blocks_of(m, strip_rows);
  const int64_t task_strips =
      std::max(blocks_of(strips, kEnough), blocks_of(kTaskWork, strip_work));
  const int64_t down = blocks_of(strips, task_strips);
  const int64_t wanted =
      std::clamp<int64_t>(strip_work * strips / down / kTaskWork, 1, blocks_of(kEnough, down));
  const int64_t task_panels = blocks_of(panels, wanted), across = blocks_of(panels, task_panels);
  parallel_for(0, down * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t row = i / across * task_strips * strip_rows, panel = i % across * task_panels;
      f(row, std::min(m, row + task_strips * strip_rows), panel,
        std::min(panels, panel + task_panels));
    }
  });
}

}  // namespace taeda::cpu
