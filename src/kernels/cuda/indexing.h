// Launches that address slices of a tensor by index tensors (text/indexing.cuh).
#pragma once

#include "kernels/cuda/sorter.h"
#include "kernels/cuda/text/indexing_args.h"
#include "kernels/cuda/walk.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cuda {

using device::Combine;

// `dims` dimensions of self from `first` on, addressed by index tensors of equal sizes: one each,
// or one for all.
struct Indices {
  const View& self;
  Span<const View> indices;
  int64_t first, dims;
  bool is_flat = false;      // one has the numbers of elements in row-major order
  bool are_offsets = false;  // one has offsets in bytes, those below 0 being skipped
  bool wrap = true;          // indices below 0 count from the end
  const char* message = "index {} is out of bounds for dimension {} with size {}";
  ErrorKind error = ErrorKind::kIndex;
  int64_t skipped = -1;     // an index that counts for nothing
  bool is_scatter = false;  // one addresses the dimension `along` of them, and is as wide in others
  int64_t along = 0;
  int64_t dim = -1;  // as messages have it, if not that of self
};

// What kernels get, without the walk: the index tensors from `begin` on, as many as one takes.
device::IndexingArgs indexing_arguments(const Indices& what, size_t begin);
using IndexingPlan = WalkPlan<2 + device::kIndices>;
// Adds dimension d of these index tensors.
void add_position(IndexingPlan& plan, const Indices& what, size_t begin, size_t d,
                  int64_t other_stride);

// How many elements lie side by side in both tensors wherever an index leads, and move as one.
int64_t elements_together(const Indices& what, const View& other);

// other[before][indices][behind] = self at the indices, or the other way.
void index_move(const Indices& what, const View& other, bool to_self);
// The offsets in bytes that indices stand for, in row-major order, -1 for one that is out of
// bounds. `numbers`, if any, gets 0, 1, ...; `touched` is the memory of both.
void index_offsets(const Indices& what, int64_t* offsets, int64_t* numbers,
                   Span<const Access> touched);

// self at the indices op= values, in the order of the indices; or = values, of which the last
// counts. A value in the host's memory is that of all.
void index_accumulate(const Indices& what, const View& values, Combine combine = Combine::kSum);
void index_write_in_order(const Indices& what, const View& values);

}  // namespace taeda::cuda
