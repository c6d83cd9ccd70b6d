// kthvalue, median, nanmedian and mode: one element of each sorted row (sort.cuh).
//
// NaN is the largest key, so how many numbers there are a search finds. A mode is the last of the
// longest run of equal keys: each thread of a row's block looks for where the runs of its elements
// begin. Keys are read log2(n) times an element for modes, else log2(n) times a row.
#pragma once
#include "kernels/cuda/text/group.cuh"
#include "kernels/cuda/text/move.cuh"
#include "kernels/cuda/text/sort.cuh"

namespace taeda::device {

struct Run {
  int64_t length, last;
};
TD_FN Run longer(const Run& a, const Run& b) {
  return b.length > a.length || (b.length == a.length && b.last < a.last) ? b : a;
}

// Where the runs of a row's keys end, and how long they are.
TD_FN int64_t mode_of(const SortArgs& a, uint64_t row, const Group& group) {
  const uint64_t* const keys = a.keys[0];
  Run best{0, 0};
  for (uint64_t i = group.rank(); i < a.n; i += group.threads) {
    const uint64_t key = keys[row + i];
    if (i + 1 < a.n && keys[row + i + 1] == key) continue;
    const uint64_t start = count_before(keys, row, row + i, key, false);
    best = longer(best, {static_cast<int64_t>(i + 1 - start), static_cast<int64_t>(i)});
  }
  return group.reduce(best, longer).last;
}

TD_FN int64_t rank_of(const SortArgs& a, uint64_t row) {
  if (a.pick == Pick::kRank) return static_cast<int64_t>(a.rank);
  const auto n = static_cast<int64_t>(a.n);
  int64_t numbers = n;
  if (a.has_nan)
    numbers = static_cast<int64_t>(count_before(a.keys[0], row, row + a.n, ~uint64_t{0}, false));
  if (a.pick == Pick::kNanMedian) return numbers > 0 ? (numbers - 1) / 2 : 0;
  return numbers < n ? numbers : (n - 1) / 2;
}

template <class S>
TD_FN void sort_pick_kernel(const SortArgs& a) {
  const Group group{a.threads};
  for (uint64_t r = group.first(); r < a.rows.count; r += group.step()) {
    const uint64_t row = r * a.n;
    const int64_t at = a.pick == Pick::kMode ? mode_of(a, row, group) : rank_of(a, row);
    if (group.rank() != 0) continue;
    const int64_t k = a.order[0][row + static_cast<uint64_t>(at)];
    const Offsets<3> by = offsets(a.rows, r);
    move<S>(a.data[1] + by[1], a.data[0] + by[0] + k * a.strides[0]);
    *reinterpret_cast<int64_t*>(a.data[2] + by[2]) = k;
  }
}

}  // namespace taeda::device
