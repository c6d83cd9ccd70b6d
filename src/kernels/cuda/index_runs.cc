// Writes in the order of the indices, by sorting them (text/index_runs.cuh).
#include <cstring>

#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/runs.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {

void index_accumulate(const Indices& what, const View& values, Combine combine) {
  if (values.numel == 0) return;
  const View &self = what.self, &index = what.indices[0];
  const int64_t bytes = item_size(self.dtype);
  device::IndexRunsArgs args{};
  WalkPlan<2> slice;
  WalkPlan<1> positions;
  for (int64_t d = 0; d < values.ndim(); d++) {
    const auto i = static_cast<size_t>(d);
    const int64_t stride = values.strides[i] * bytes, position = d - what.first;
    const auto at = static_cast<size_t>(position < 0 ? d : d - index.ndim() + what.dims);
    if (position >= 0 && position < index.ndim())
      positions.add(values.sizes[i], {stride});
    else
      slice.add(values.sizes[i], {self.strides[at] * bytes, stride});
  }
  slice.sort_by(1);
  args.slice = slice.walk();
  args.positions = positions.walk();
  args.self = static_cast<char*>(self.data);
  args.type = element_type(self.dtype);
  SmallVector<Access, 2> touched{access(self, true)};
  if (values.device.is_cpu()) {
    std::memcpy(args.number, values.data, static_cast<size_t>(bytes));
  } else {
    args.values = static_cast<const char*>(values.data);
    touched.push_back(access(values, false));
  }
  const DType type = is_inexact(self.dtype) ? dtype_info(self.dtype).compute : DType::kInt64;
  const SortedRuns sorted(what, static_cast<int64_t>(args.slice.count), type, combine);
  args.runs = sorted.runs;
  sorted.combine("index_runs", &args, touched);
  sorted.combine_partials(self, args.slice);
}

void index_write_in_order(const Indices& what, const View& values) {
  if (values.numel == 0) return;
  const SortedRuns sorted(what, 0, DType::kInt64, Combine::kSet);
  const Dense offsets(what.self.device, DType::kInt64, what.indices[0].sizes);
  device::IndexRunsArgs args{};
  args.runs = sorted.runs;
  args.last = offsets.view().as<int64_t>();
  SmallVector<Access, 12> touched = sorted.accesses(false);
  touched.push_back(access(offsets.view(), true));
  launch(what.self.device.index, "index_last_i64_any", offsets.view().numel, &args, touched);
  index_move({what.self, {&offsets.view(), 1}, what.first, what.dims, false, true}, values, true);
}

}  // namespace taeda::cuda
