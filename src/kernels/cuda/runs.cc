#include "kernels/cuda/runs.h"

#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"

namespace taeda::cuda {

SortedRuns::SortedRuns(const Indices& what, int64_t columns, DType compute, Combine combine)
    : device_(what.self.device), compute_(compute), sorter_(device_, 1, what.indices[0].numel) {
  index_offsets(what, sorter_.keys(), sorter_.order(), sorter_.accesses(true));
  sorter_.merge();
  runs = {sorter_.args.keys[0],           sorter_.order(), sorter_.args.n,
          static_cast<uint64_t>(columns), nullptr,         combine};
  if (runs.count <= device::kPiece) return;
  const auto slots = static_cast<int64_t>((runs.count + device::kPiece - 1) / device::kPiece);
  partials_.emplace(device_, 2 * slots * columns * item_size(compute));
  runs.partials = partials_->data();
}

SmallVector<Access, 12> SortedRuns::accesses(bool writes) const {
  SmallVector<Access, 12> all;
  for (const Access& keys : sorter_.accesses(false)) all.push_back(keys);
  if (partials_) all.push_back(partials_->access(writes));
  return all;
}

void SortedRuns::combine(std::string_view kernel, void* args, Span<const Access> touched) const {
  SmallVector<Access, 12> all = accesses(true);
  for (const Access& more : touched) all.push_back(more);
  launch(device_.index, kernel_name(kernel, compute_, "_any"),
         static_cast<int64_t>(runs.count * runs.columns), args, all);
}

void SortedRuns::combine_partials(const View& self, const device::Walk<2>& slice) const {
  if (!partials_) return;
  device::IndexRunsArgs args{};
  args.runs = runs;
  args.slice = slice;
  args.self = static_cast<char*>(self.data);
  args.type = element_type(self.dtype);
  SmallVector<Access, 12> touched = accesses(false);
  touched.push_back(access(self, true));
  launch(device_.index, kernel_name("index_partials", compute_, "_any"),
         static_cast<int64_t>((runs.count - 1) / device::kPiece * runs.columns * 32), &args,
         touched);
}

}  // namespace taeda::cuda
