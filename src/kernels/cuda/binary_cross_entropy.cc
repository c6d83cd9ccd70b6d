// binary_cross_entropy of each element (text/loss.cuh).
#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/loss_args.h"
#include "taeda/error.h"

namespace taeda::cuda {

void binary_cross_entropy(const View& out, const View& input, const View& target) {
  if (out.numel == 0) return;
  device::BinaryCrossEntropyArgs args{};
  args.out = array(out), args.x = array(input), args.target = array(target);
  args.n = static_cast<uint64_t>(out.numel);
  args.message = {
      "all elements of input should be between 0 and 1\nFix: sigmoid the input first, or leave it "
      "and call binary_cross_entropy_with_logits",
      0, static_cast<int32_t>(ErrorKind::kRuntime)};
  args.target_message = {"all elements of target should be between 0 and 1", 0,
                         static_cast<int32_t>(ErrorKind::kRuntime)};
  const View read[] = {input, target};
  launch(out.device.index,
         kernel_name("binary_cross_entropy", dtype_info(input.dtype).compute, "_any"), out.numel,
         &args, accesses({&out, 1}, read));
}

}  // namespace taeda::cuda
