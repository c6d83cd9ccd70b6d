// Fractional max pooling (text/fractional_pool.cuh).
#include "kernels/cuda/windows.h"
#include "taeda/error.h"

namespace taeda::cuda {

void fractional_max_pool(const View& output, const View& indices, const View& self,
                         IntSpan kernel_size, IntSpan, const View& random_samples) {
  const cpu::PoolShape s = cpu::pool_shape(self.sizes, output.sizes, kernel_size, {}, {0}, {1});
  device::PoolArgs args = pool_arguments(s, Each::kResult);
  args.result = static_cast<char*>(output.data);
  args.indices = indices.as<int64_t>();
  args.samples = static_cast<const char*>(random_samples.data);
  args.spatial = static_cast<int32_t>(kernel_size.size());
  args.message = {"fractional_max_pool: random_samples must be finite", 0,
                  static_cast<int32_t>(ErrorKind::kRuntime)};
  const View written[] = {output, indices}, read[] = {self, random_samples};
  launch_windows("fractional_max_pool", self, args, written, read);
}

}  // namespace taeda::cuda
