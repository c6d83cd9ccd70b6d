// Accumulation into slices that several indices name, in the order of the indices: those are sorted
// by what they name, and a thread adds up a run of equal ones.
//
//   self[b + key + a] += sum over the run of values[b][order(p)][a]
//
// No atomics: the same bits each time, as on the CPU. Each value is read once, each element of self
// that is named is read and written once.
#pragma once
#include "kernels/cuda/text/indexing_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

template <class T>
TD_FN void index_runs_kernel(const IndexRunsArgs& a) {
  for (uint64_t i = first_index(); i < a.count * a.slice.count; i += index_step()) {
    const uint64_t first = i / a.slice.count, key = a.keys[first];
    if (key >> 63 || (first > 0 && a.keys[first - 1] == key)) continue;
    const Offsets<2> at = offsets(a.slice, i - first * a.slice.count);
    char* const self = a.self + (at[0] + static_cast<int64_t>(key));
    T sum = load<T>(self, a.type);
    for (uint64_t p = first; p < a.count && a.keys[p] == key; p++) {
      const int64_t from = offsets(a.positions, static_cast<uint64_t>(a.order[p]))[0];
      sum = sum + load<T>(a.values + (at[1] + from), a.type);
    }
    store(self, a.type, sum);
  }
}

// Offsets by number, but for those of a run whose values a later one replaces.
TD_FN void index_last_kernel(const IndexRunsArgs& a) {
  for (uint64_t p = first_index(); p < a.count; p += index_step()) {
    const bool last = p + 1 == a.count || a.keys[p + 1] != a.keys[p];
    a.last[a.order[p]] = last ? static_cast<int64_t>(a.keys[p]) : -1;
  }
}

}  // namespace taeda::device
