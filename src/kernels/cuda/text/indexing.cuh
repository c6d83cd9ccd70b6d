// index, index_put_, take and put_: slices of a tensor that index tensors name.
//
//   read:  other[b][p][a] = self[b + offset(p) + a],   offset(p) = sum of index_k(p) stride_k
//   write: self[b + offset(p) + a] = other[b][p][a]
//
// b runs over the dimensions in front of the indexed ones, a over those behind. Each element moves
// once, and each index is read for every element of its slice, from the cache. Of several writes to
// an element any one may be the last. An index out of bounds is reported, and skipped.
#pragma once
#include "kernels/cuda/text/indexing_args.h"
#include "kernels/cuda/text/move.cuh"

namespace taeda::device {

// Where the indices of an element lead in self; below 0: nowhere.
TD_FN int64_t address(const IndexingArgs& a, const Offsets<2 + kIndices>& at) {
  int64_t offset = 0;
#pragma unroll
  for (int k = 0; k < kIndices; k++) {
    if (k >= a.count) break;
    const char* const p = a.index[k] + at[2 + k];
    const int64_t given = a.types[k] == ElementType::kInt64 ? *reinterpret_cast<const int64_t*>(p)
                                                            : *reinterpret_cast<const int32_t*>(p);
    if (a.are_offsets) return given;
    const int64_t i = a.wrap && given < 0 ? given + a.size[k] : given;
    if (i < 0 || i >= a.size[k]) {
      BoundsMessage message = a.message;
      message.dim = a.dim[k];
      report(message, given, a.size[k]);
      return -1;
    }
    if (i == a.skipped) return -1;
    offset += a.is_flat ? offsets(a.flat, static_cast<uint64_t>(i))[0] : i * a.stride[k];
  }
  return offset;
}

template <class S>
TD_FN void index_read_kernel(const IndexingArgs& a) {
  for (uint64_t i = first_index(); i < a.walk.count; i += index_step()) {
    const Offsets<2 + kIndices> at = offsets(a.walk, i);
    const int64_t offset = address(a, at);
    if (offset >= 0) move<S>(a.other + at[0], a.self + (at[1] + offset));
  }
}
template <class S>
TD_FN void index_write_kernel(const IndexingArgs& a) {
  for (uint64_t i = first_index(); i < a.walk.count; i += index_step()) {
    const Offsets<2 + kIndices> at = offsets(a.walk, i);
    const int64_t offset = address(a, at);
    if (offset >= 0) move<S>(a.self + (at[1] + offset), a.other + at[0]);
  }
}

// The offsets themselves, from those of operand 1, to `other`.
TD_FN void index_offsets_kernel(const IndexingArgs& a) {
  for (uint64_t i = first_index(); i < a.walk.count; i += index_step()) {
    const Offsets<2 + kIndices> at = offsets(a.walk, i);
    int64_t* const to = reinterpret_cast<int64_t*>(a.other) + i;
    const int64_t offset = address(a, at), before = a.added ? *to : at[1];
    *to = offset < 0 || before < 0 ? -1 : before + offset;
    if (a.order) a.order[i] = static_cast<int64_t>(i);
  }
}

}  // namespace taeda::device
