#include "kernels/cuda/indexing.h"

#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
using device::kIndices;

void index_move(const Indices& what, const View& other, bool to_self) {
  if (other.numel == 0) return;
  const View &self = what.self, &index = what.indices[0];
  if (what.indices.size() > kIndices) {
    const Dense offsets(self.device, DType::kInt64, index.sizes);
    const Access touched[] = {access(offsets.view(), true)};
    index_offsets(what, offsets.view().as<int64_t>(), nullptr, touched);
    return index_move({self, {&offsets.view(), 1}, what.first, what.dims, false, true}, other,
                      to_self);
  }
  device::IndexingArgs args = indexing_arguments(what, 0);
  IndexingPlan plan;
  const int64_t bytes = item_size(self.dtype), together = elements_together(what, other);
  for (int64_t d = 0; d < other.ndim(); d++) {
    const auto i = static_cast<size_t>(d);
    const int64_t stride = other.strides[i] * bytes, position = d - what.first;
    if (position >= 0 && position < index.ndim()) {
      add_position(plan, what, 0, static_cast<size_t>(position), stride);
      continue;
    }
    const auto at = static_cast<size_t>(position < 0 ? d : d - index.ndim() + what.dims);
    const int64_t n = d + 1 == other.ndim() ? together : 1;
    plan.add(other.sizes[i] / n, {stride * n, self.strides[at] * bytes * n, 0, 0, 0, 0});
  }
  args.walk = plan.walk();
  args.other = static_cast<char*>(other.data);
  SmallVector<Access, 8> touched{access(self, to_self), access(other, !to_self)};
  for (const View& v : what.indices) touched.push_back(access(v, false));
  const std::string_view kernel = to_self ? "index_write" : "index_read";
  launch(self.device.index, kernel_name(kernel, mover(together * bytes), "_any"),
         other.numel / together, &args, touched);
}

void index_offsets(const Indices& what, int64_t* offsets, int64_t* numbers,
                   Span<const Access> touched) {
  const View& index = what.indices[0];
  for (size_t begin = 0; begin < what.indices.size(); begin += kIndices) {
    device::IndexingArgs args = indexing_arguments(what, begin);
    IndexingPlan plan;
    for (size_t d = 0; d < index.sizes.size(); d++) add_position(plan, what, begin, d, 0);
    args.walk = plan.walk();
    args.other = reinterpret_cast<char*>(offsets);
    args.order = numbers;
    args.added = begin > 0;
    SmallVector<Access, 8> all(touched.begin(), touched.end());
    for (size_t k = begin; k < begin + args.count; k++)
      all.push_back(access(what.indices[k], false));
    launch(what.self.device.index, "index_offsets_i64_any", index.numel, &args, all);
  }
}

}  // namespace taeda::cuda
