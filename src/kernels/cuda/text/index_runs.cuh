// Accumulation into slices that several indices name, in the order of the indices: those are sorted
// by what they name (runs.cuh).
//
//   self[b + key + a] = self[b + key + a] op values[b][order(p)][a] op ...
//
// Each value is read once, each element of self that is named is read and written once.
#pragma once
#include "kernels/cuda/text/indexing_args.h"
#include "kernels/cuda/text/runs.cuh"

namespace taeda::device {

template <class T>
class SliceElement {
 public:
  TD_FN SliceElement(const IndexRunsArgs& a, uint64_t number)
      : a_(a), at_(offsets(a.slice, number)) {}
  TD_FN char* to(uint64_t key) const { return a_.self + (at_[0] + static_cast<int64_t>(key)); }
  TD_FN T value(int64_t index) const {
    const int64_t from = at_[1] + offsets(a_.positions, static_cast<uint64_t>(index))[0];
    const char* const number = reinterpret_cast<const char*>(a_.number);
    return load<T>(a_.values ? a_.values + from : number, a_.type);
  }

 private:
  const IndexRunsArgs& a_;
  Offsets<2> at_;
};

// Offsets by number, but for those of a run whose values a later one replaces.
TD_FN void index_last_kernel(const IndexRunsArgs& a) {
  const Runs& r = a.runs;
  for (uint64_t p = first_index(); p < r.count; p += index_step())
    a.last[r.order[p]] = is_continued(r, p + 1) ? -1 : static_cast<int64_t>(r.keys[p]);
}

}  // namespace taeda::device
