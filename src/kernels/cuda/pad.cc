// Padding with elements of the tensor itself, and its gradient (text/pad.cuh). `pad` holds the
// counts before and after, the last dimension's first; negative counts crop.
#include <algorithm>

#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/text/pad_args.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

int64_t before(IntSpan pad, int64_t from_the_last) {
  const auto i = static_cast<size_t>(2 * from_the_last);
  return i < pad.size() ? pad[i] : 0;
}

device::PadMode mode_named(std::string_view name) {
  if (name == "reflect") return device::PadMode::kReflect;
  return name == "replicate" ? device::PadMode::kReplicate : device::PadMode::kCircular;
}

// How dimension d from the last becomes padded.
device::PadDim padded_dim(IntSpan whole, IntSpan padded, IntSpan pad, int64_t d) {
  if (2 * d >= static_cast<int64_t>(pad.size())) return {1, 1, 0, 0, 1, 0};
  const auto at = static_cast<size_t>(static_cast<int64_t>(whole.size()) - 1 - d);
  const int64_t cropped = std::max<int64_t>(-before(pad, d), 0),
                behind = std::max<int64_t>(-pad[static_cast<size_t>(2 * d + 1)], 0);
  return {whole[at], padded[at], before(pad, d), cropped, whole[at] - cropped - behind, 0};
}

// Both are dense; `out` is padded, or backward the tensor that was.
void run(std::string_view kernel, DType type, const View& out, const View& x, IntSpan pad,
         std::string_view mode, bool backward) {
  if (out.numel == 0) return;
  device::PadArgs args{};
  const View &whole = backward ? out : x, &padded = backward ? x : out;
  int64_t stride = item_size(x.dtype), planes = out.numel;
  WalkPlan<4> walk;
  for (int64_t d = 0; d < 3; d++) {
    device::PadDim& dim = args.dims[2 - d];
    dim = padded_dim(whole.sizes, padded.sizes, pad, d);
    dim.stride = stride;
    stride *= backward ? dim.padded : dim.n;
    planes /= backward ? dim.n : dim.padded;
  }
  walk.add(planes, {stride, 0, 0, 0});
  for (int d = 0; d < 3; d++) {
    int64_t counter[4] = {};
    counter[d + 1] = 1;
    walk.add(backward ? args.dims[d].n : args.dims[d].padded, counter);
  }
  args.walk = walk.walk();
  args.out = static_cast<char*>(out.data);
  args.x = static_cast<const char*>(x.data);
  args.mode = mode_named(mode);
  args.type = element_type(x.dtype);
  const Access touched[] = {access(out, true), access(x, false)};
  launch(out.device.index, kernel_name(kernel, type, "_any"), out.numel, &args, touched);
}

}  // namespace

void pad_by_index(const View& out, const View& x, IntSpan pad, std::string_view mode) {
  run("pad", mover(x.dtype), out, x, pad, mode, false);
}
void pad_by_index_backward(const View& gx, const View& gy, IntSpan, IntSpan pad,
                           std::string_view mode) {
  run("pad_backward", dtype_info(gy.dtype).compute, gx, gy, pad, mode, true);
}

}  // namespace taeda::cuda
