// Counts in equal bins, for histc and bincount (text/search.cuh).
#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/search_args.h"

namespace taeda::cuda {
namespace {

void count(const View& counts, const View& x, double low, double high, DType compute) {
  fill(counts, Scalar(int64_t{0}));
  if (x.numel == 0) return;
  device::HistogramArgs args{};
  WalkPlan<1> plan;
  for (size_t d = 0; d < x.sizes.size(); d++)
    plan.add(x.sizes[d], {x.strides[d] * item_size(x.dtype)});
  plan.sort_by(0);
  args.walk = plan.walk();
  args.x = static_cast<const char*>(x.data);
  args.counts = counts.as<int64_t>();
  args.bins = counts.numel;
  args.low = low;
  args.high = high;
  args.type = element_type(x.dtype);
  args.shared = args.bins <= device::kSharedBins && x.numel <= UINT32_MAX;
  const Access touched[] = {access(counts, true), access(x, false)};
  launch(counts.device.index, kernel_name("histogram", compute, "_any"), x.numel, &args, touched);
}

}  // namespace

void histogram(const View& out, const View& x, double low, double high) {
  if (out.dtype == DType::kInt64) return count(out, x, low, high, DType::kFloat32);
  const Dense counts(out.device, DType::kInt64, out.sizes);
  count(counts, x, low, high, out.dtype);
  copy(out, counts.view());
}

}  // namespace taeda::cuda
