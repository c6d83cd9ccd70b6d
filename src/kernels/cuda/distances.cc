// cdist and pdist (text/distances.cu).
#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/distances_args.h"
#include "kernels/optional.h"

namespace taeda::cuda {
namespace {

void distances(const View& out, const View& first, const View& second, bool pairs, double p) {
  if (out.numel == 0) return;
  const DType type = first.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const Dense x(first), y(second);
  const size_t last = first.sizes.size() - 1;
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  device::DistancesArgs args{x.view().data,
                             y.view().data,
                             array(out),
                             size(first.sizes[last - 1]),
                             size(second.sizes[last - 1]),
                             size(first.sizes[last]),
                             size(out.numel),
                             p,
                             pairs};
  const View read[] = {x, y};
  launch(out.device.index, kernel_name("distances", type, "_any"), out.numel, &args,
         accesses({&out, 1}, read));
}

}  // namespace

void pdist(const View& out, const View& self, double p) { distances(out, self, self, true, p); }
void cdist(const View& out, const View& x1, const View& x2, double p, OptInt) {
  distances(out, x1, x2, false, p);
}

}  // namespace taeda::cuda
