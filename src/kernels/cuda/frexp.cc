// frexp (text/frexp.cu).
#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/frexp_args.h"

namespace taeda::cuda {

void frexp(const View& mantissa, const View& exponent, const View& self) {
  if (self.numel == 0) return;
  device::FrexpArgs args{array(mantissa), array(self), exponent.as<int32_t>(),
                         static_cast<uint64_t>(self.numel)};
  const View written[] = {mantissa, exponent};
  launch(self.device.index, kernel_name("frexp", dtype_info(self.dtype).compute, "_any"),
         self.numel, &args, accesses(written, {&self, 1}));
}

}  // namespace taeda::cuda
