// The arguments of text/indexing.cuh.
#include <algorithm>

#include "kernels/cuda/indexing.h"
#include "kernels/cuda/kernel_name.h"

namespace taeda::cuda {

device::IndexingArgs indexing_arguments(const Indices& what, size_t begin) {
  device::IndexingArgs args{};
  const View& self = what.self;
  for (size_t k = 0; k < device::kIndices && begin + k < what.indices.size(); k++, args.count++) {
    const View& index = what.indices[begin + k];
    const auto d = static_cast<size_t>(what.first + what.along) + begin + k;
    args.index[k] = static_cast<const char*>(index.data);
    args.types[k] = element_type(index.dtype);
    args.size[k] = args.dim[k] = what.is_flat ? self.numel : 1;
    if (what.is_flat || d >= self.sizes.size()) continue;
    args.size[k] = self.sizes[d];
    args.stride[k] = self.strides[d] * item_size(self.dtype);
    args.dim[k] = what.dim < 0 ? static_cast<int64_t>(d) : what.dim;
  }
  WalkPlan<1> flat;
  for (size_t d = 0; what.is_flat && d < self.sizes.size(); d++)
    flat.add(self.sizes[d], {self.strides[d] * item_size(self.dtype)});
  args.flat = flat.walk();
  args.self = static_cast<char*>(self.data);
  args.message = {what.message, 0, static_cast<int32_t>(what.error)};
  args.skipped = what.skipped;
  args.wrap = what.wrap;
  args.is_flat = what.is_flat;
  args.are_offsets = what.are_offsets;
  return args;
}

void add_position(IndexingPlan& plan, const Indices& what, size_t begin, size_t d,
                  int64_t other_stride) {
  int64_t strides[2 + device::kIndices] = {other_stride};
  for (size_t k = 0; k < device::kIndices && begin + k < what.indices.size(); k++) {
    const View& index = what.indices[begin + k];
    strides[2 + k] = index.strides[d] * item_size(index.dtype);
  }
  if (what.is_scatter && d != static_cast<size_t>(what.along))
    strides[1] =
        what.self.strides[static_cast<size_t>(what.first) + d] * item_size(what.self.dtype);
  plan.add(what.indices[begin].sizes[d], strides);
}

int64_t elements_together(const Indices& what, const View& other) {
  const View& self = what.self;
  if (other.ndim() == 0 || what.first + what.dims >= self.ndim()) return 1;
  if (self.strides.back() != 1 || other.strides.back() != 1) return 1;
  for (int64_t n = 16 / item_size(self.dtype); n > 1; n /= 2) {
    const auto whole = [n](int64_t count) { return count % n == 0; };
    const int64_t bytes = n * item_size(self.dtype);
    const auto aligned = [bytes](const View& v) {
      return reinterpret_cast<uintptr_t>(v.data) % static_cast<uintptr_t>(bytes) == 0;
    };
    if (aligned(self) && aligned(other) && whole(other.sizes.back()) &&
        std::all_of(self.strides.begin(), self.strides.end() - 1, whole) &&
        std::all_of(other.strides.begin(), other.strides.end() - 1, whole))
      return n;
  }
  return 1;
}

}  // namespace taeda::cuda
