// The order that sorts rows, for unique along a dimension (text/row_order.cuh).
#include <utility>

#include "device/launch.h"
#include "kernels/cpu/sort/search.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/row_order_args.h"
#include "kernels/cuda/walk.h"
#include "kernels/cuda/workspace.h"

namespace taeda::cuda {

void row_order(const View& out, const View& rows) {
  const int64_t n = rows.sizes[0];
  if (n == 0) return;
  const Workspace scratch(rows.device, 8 * n);
  device::RowOrderArgs args{};
  args.rows = static_cast<const char*>(rows.data);
  args.n = static_cast<uint64_t>(n);
  args.width = rows.sizes[1];
  args.itemsize = item_size(rows.dtype);
  args.type = element_type(rows.dtype);
  args.order[0] = reinterpret_cast<int64_t*>(scratch.data());
  args.order[1] = out.as<int64_t>();
  // The last pass writes `out`.
  int passes = 1;
  for (uint64_t run = 1; run < args.n; run *= 2) passes++;
  if (passes % 2 == 0) std::swap(args.order[0], args.order[1]);
  const DType type = is_inexact(rows.dtype) ? DType::kFloat64 : DType::kInt64;
  const Access touched[] = {access(rows, false), access(out, true), scratch.access(true)};
  for (int pass = 0; pass < passes; pass++) {
    launch(out.device.index, kernel_name("row_merge", type, "_any"), n, &args, touched);
    args.run = args.run ? 2 * args.run : 1;
    std::swap(args.order[0], args.order[1]);
  }
}

}  // namespace taeda::cuda
