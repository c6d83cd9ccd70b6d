// sort and topk by merging runs (text/sort.cuh).
#include <utility>

#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/text/sort_args.h"
#include "kernels/cuda/walk.h"
#include "kernels/cuda/workspace.h"

namespace taeda::cuda {
namespace {

DType key_type(DType t) { return is_inexact(t) ? DType::kFloat64 : DType::kInt64; }

// The first elements along `dim` in their order, as many as `values` has.
void sort_rows(const View& values, const View& indices, const View& x, int64_t dim,
               bool descending) {
  if (values.numel == 0) return;
  const View* const views[] = {&x, &values, &indices};
  const auto along = static_cast<size_t>(dim);
  device::SortArgs args{};
  WalkPlan<3> rows;
  for (size_t d = 0; d < x.sizes.size(); d++) {
    int64_t strides[3];
    for (int k = 0; k < 3; k++) strides[k] = views[k]->strides[d] * item_size(views[k]->dtype);
    if (d == along) std::copy_n(strides, 3, args.strides);
    if (d != along) rows.add(x.sizes[d], strides);
  }
  rows.sort_by(0);
  args.rows = rows.walk();
  for (int k = 0; k < 3; k++) args.data[k] = static_cast<char*>(views[k]->data);
  args.n = x.ndim() ? static_cast<uint64_t>(x.sizes[along]) : 1;
  args.kept = x.ndim() ? static_cast<uint64_t>(values.sizes[along]) : 1;
  args.type = element_type(x.dtype);
  args.descending = descending;

  const int64_t count = x.numel, bytes = 8 * count;
  const Workspace scratch[] = {
      {x.device, bytes}, {x.device, bytes}, {x.device, bytes}, {x.device, bytes}};
  for (int k = 0; k < 2; k++) {
    args.keys[k] = reinterpret_cast<uint64_t*>(scratch[k].data());
    args.order[k] = reinterpret_cast<int64_t*>(scratch[2 + k].data());
  }
  const auto run = [&](std::string_view kernel, DType type, int64_t work,
                       std::initializer_list<View> read, std::initializer_list<View> written) {
    SmallVector<Access, 8> touched;
    for (const Workspace& w : scratch) touched.push_back(w.access(true));
    for (const View& v : read) touched.push_back(access(v, false));
    for (const View& v : written) touched.push_back(access(v, true));
    launch(x.device.index, kernel_name(kernel, type, "_any"), work, &args, touched);
  };
  run("sort_load", key_type(x.dtype), count, {x}, {});
  for (args.width = 1; args.width < args.n; args.width *= 2) {
    run("sort_merge", DType::kInt64, count, {}, {});
    std::swap(args.keys[0], args.keys[1]);
    std::swap(args.order[0], args.order[1]);
  }
  run("sort_store", mover(x.dtype), values.numel, {x}, {values, indices});
}

}  // namespace

void sort(const View& values, const View& indices, const View& x, int64_t dim, bool descending) {
  sort_rows(values, indices, x, dim, descending);
}
void topk(const View& values, const View& indices, const View& x, int64_t, int64_t dim,
          bool largest, bool) {
  sort_rows(values, indices, x, dim, largest);
}

}  // namespace taeda::cuda
