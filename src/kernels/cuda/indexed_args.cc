// The arguments of text/index.cuh: lines along the indexed dimension.
#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/indexed.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

int64_t size_of(const View& v, int64_t d) { return v.ndim() ? v.sizes[static_cast<size_t>(d)] : 1; }
int64_t stride_of(const View& v, int64_t d) {
  return v.ndim() ? v.strides[static_cast<size_t>(d)] * item_size(v.dtype) : 0;
}

}  // namespace

device::IndexArgs index_arguments(const Indexed& what) {
  const auto& [self, other, index, dim, message, error, wrap, skipped, table] = what;
  device::IndexArgs args{};
  WalkPlan<3> lines;
  for (int64_t d = 0; d < std::max<int64_t>(1, index.ndim()); d++)
    if (table || d != dim)
      lines.add(size_of(index, d), {stride_of(self, d), stride_of(other, d), stride_of(index, d)});
  lines.sort_by(1);
  args.self = static_cast<char*>(self.data);
  args.other = static_cast<char*>(other.data);
  args.index = static_cast<const char*>(index.data);
  args.n = table ? 1 : static_cast<uint64_t>(size_of(index, dim));
  args.other_stride = table ? 0 : stride_of(other, dim);
  args.index_stride = table ? 0 : stride_of(index, dim);
  args.size = size_of(table ? *table : self, dim);
  args.stride = stride_of(table ? *table : self, dim);
  args.along =
      std::abs(args.other_stride) < std::abs(lines.innermost(1)) || lines.innermost(1) == 0;
  args.lines = lines.walk();
  args.chunk = args.chunks = 1;
  args.message = {message, dim, static_cast<int32_t>(error)};
  args.index_type = element_type(index.dtype);
  args.type = element_type(self.dtype);
  args.wrap = wrap;
  args.skipped = skipped;
  return args;
}

}  // namespace taeda::cuda
