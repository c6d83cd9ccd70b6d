// The bins of histogram (text/search.cuh).
#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/search_args.h"

namespace taeda::cuda {

void histogram_bins(const View& out, const View& self, const View& edges) {
  if (self.numel == 0) return;
  device::BinsArgs args{static_cast<const char*>(self.data), static_cast<const char*>(edges.data),
                        out.as<int64_t>(), static_cast<uint64_t>(self.numel), edges.numel - 1};
  const View read[] = {self, edges};
  launch(out.device.index, kernel_name("histogram_bins", self.dtype, "_any"), self.numel, &args,
         accesses({&out, 1}, read));
}

}  // namespace taeda::cuda
