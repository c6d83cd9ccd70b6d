// Running statistics (text/update.cu).
#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/update_args.h"

namespace taeda::cuda {

void move_running(const View& self, const View& value, double momentum, double scale) {
  if (self.numel == 0) return;
  device::MoveRunningArgs args{};
  args.self = static_cast<char*>(self.data);
  args.value = static_cast<const char*>(value.data);
  args.self_stride = self.strides[0] * item_size(self.dtype);
  args.value_stride = value.strides[0] * item_size(value.dtype);
  args.n = static_cast<uint64_t>(self.numel);
  args.momentum = momentum, args.scale = scale;
  args.self_type = element_type(self.dtype), args.value_type = element_type(value.dtype);
  launch(self.device.index, "move_running_f64_any", self.numel, &args,
         accesses({&self, 1}, {&value, 1}));
}

}  // namespace taeda::cuda
