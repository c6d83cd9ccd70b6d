// Writes in the order of the indices, by sorting them (text/index_runs.cuh).
#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/indexing.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

Sorter sorted(const Indices& what) {
  Sorter sorter(what.self.device, 1, what.indices[0].numel);
  index_offsets(what, sorter.keys(), sorter.order(), sorter.accesses(true));
  sorter.merge();
  return sorter;
}

device::IndexRunsArgs arguments(const Sorter& sorter, const View& self) {
  device::IndexRunsArgs args{};
  args.keys = sorter.args.keys[0];
  args.order = sorter.order();
  args.count = sorter.args.n;
  args.self = static_cast<char*>(self.data);
  args.type = element_type(self.dtype);
  return args;
}

}  // namespace

void index_accumulate(const Indices& what, const View& values) {
  if (values.numel == 0) return;
  const View &self = what.self, &index = what.indices[0];
  const int64_t bytes = item_size(self.dtype);
  const Sorter sorter = sorted(what);
  device::IndexRunsArgs args = arguments(sorter, self);
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
  args.slice = slice.walk();
  args.positions = positions.walk();
  args.values = static_cast<const char*>(values.data);
  SmallVector<Access, 8> touched{access(self, true), access(values, false)};
  for (const Access& scratch : sorter.accesses(false)) touched.push_back(scratch);
  const DType type = is_inexact(self.dtype) ? dtype_info(self.dtype).compute : DType::kInt64;
  launch(self.device.index, kernel_name("index_runs", type, "_any"), values.numel, &args, touched);
}

void index_write_in_order(const Indices& what, const View& values) {
  if (values.numel == 0) return;
  const Sorter sorter = sorted(what);
  const Dense offsets(what.self.device, DType::kInt64, what.indices[0].sizes);
  device::IndexRunsArgs args = arguments(sorter, what.self);
  args.last = offsets.view().as<int64_t>();
  SmallVector<Access, 8> touched{access(offsets.view(), true)};
  for (const Access& scratch : sorter.accesses(false)) touched.push_back(scratch);
  launch(what.self.device.index, "index_last_i64_any", offsets.view().numel, &args, touched);
  index_move({what.self, {&offsets.view(), 1}, what.first, what.dims, false, true}, values, true);
}

}  // namespace taeda::cuda
