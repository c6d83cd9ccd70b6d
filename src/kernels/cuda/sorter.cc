#include "kernels/cuda/sorter.h"

#include <algorithm>
#include <utility>

#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {

Sorter::Sorter(Device device, int64_t rows, int64_t n)
    : device_(device),
      scratch_{Workspace{device, 8 * rows * n}, Workspace{device, 8 * rows * n},
               Workspace{device, 8 * rows * n}, Workspace{device, 8 * rows * n}} {
  for (size_t k = 0; k < 2; k++) {
    args.keys[k] = reinterpret_cast<uint64_t*>(scratch_[k].data());
    args.order[k] = reinterpret_cast<int64_t*>(scratch_[2 + k].data());
  }
  args.rows.count = static_cast<uint64_t>(rows);
  args.n = static_cast<uint64_t>(n);
}

std::array<Access, 4> Sorter::accesses(bool writes) const {
  return {scratch_[0].access(writes), scratch_[1].access(writes), scratch_[2].access(writes),
          scratch_[3].access(writes)};
}

void Sorter::load(const View& x, const View& values, const View& indices, int64_t dim,
                  bool descending) {
  const View* const views[] = {&x, &values, &indices};
  const auto along = static_cast<size_t>(dim);
  WalkPlan<3> rows;
  for (size_t d = 0; d < x.sizes.size(); d++) {
    int64_t strides[3];
    for (int k = 0; k < 3; k++) strides[k] = views[k]->strides[d] * item_size(views[k]->dtype);
    if (d == along) std::copy_n(strides, 3, args.strides);
    if (d != along) rows.add(x.sizes[d], strides);
  }
  rows.sort_by(0);
  args.rows = rows.walk();
  for (int k = 0; k < 3; k++) {
    args.data[k] = static_cast<char*>(views[k]->data);
    loaded_.push_back(access(*views[k], k > 0));
  }
  args.kept = x.ndim() ? static_cast<uint64_t>(values.sizes[along]) : 1;
  args.type = element_type(x.dtype);
  args.descending = descending;
  run("sort_load", is_inexact(x.dtype) ? DType::kFloat64 : DType::kInt64, x.numel);
}

void Sorter::merge() {
  const auto count = static_cast<int64_t>(args.rows.count * args.n);
  for (args.width = 1; args.width < args.n; args.width *= 2) {
    run("sort_merge", DType::kInt64, count);
    std::swap(args.keys[0], args.keys[1]);
    std::swap(args.order[0], args.order[1]);
  }
}

void Sorter::run(std::string_view kernel, DType type, int64_t work, bool writes) {
  SmallVector<Access, 8> touched;
  for (const Access& scratch : accesses(true)) touched.push_back(scratch);
  for (size_t k = 0; k < loaded_.size(); k++)
    if (k == 0 || writes) touched.push_back(loaded_[k]);
  launch(device_.index, kernel_name(kernel, type, "_any"), work, &args, touched);
}

}  // namespace taeda::cuda
