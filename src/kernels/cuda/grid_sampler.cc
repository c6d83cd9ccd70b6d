// grid_sampler and its gradients (text/grid.cuh).
#include <algorithm>

#include "device/deterministic.h"
#include "device/device.h"
#include "device/launch.h"
#include "kernels/copy.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/grid_args.h"

namespace taeda::cuda {
namespace {

// Guesses, measured on no card.
constexpr int64_t kShares = 32;           // of elements: every warp goes along all points
constexpr int64_t kMostShares = 1 << 20;  // of points

device::GridArgs arguments(const View& input, const View& grid, int64_t mode, int64_t padding,
                           bool align_corners) {
  device::GridArgs args{};
  args.x = array(input), args.grid = array(grid);
  args.batch = input.sizes[0], args.channels = input.sizes[1];
  args.axes = input.ndim() - 2;
  args.plane = args.points = 1;
  for (int64_t a = 0; a < 3; a++)  // x is the last dimension
    args.size[a] = a < args.axes ? input.sizes[static_cast<size_t>(args.axes + 1 - a)] : 1;
  for (int64_t a = 0; a < args.axes; a++) {
    args.plane *= args.size[a];
    args.points *= grid.sizes[static_cast<size_t>(a + 1)];
  }
  args.options = {static_cast<grid::Mode>(mode), static_cast<grid::Padding>(padding),
                  align_corners};
  return args;
}

void run(std::string_view kernel, device::GridArgs& args, int64_t threads, const View& written,
         Span<const View> read) {
  if (threads == 0 || args.points == 0) return;
  launch(written.device.index, kernel_name(kernel, dtype_info(read[0].dtype).compute, "_any"),
         threads, &args, accesses({&written, 1}, read));
}

// Lets more warps than one work on a plane of gx where planes do not keep the device busy.
void share_planes(device::GridArgs& args, int device) {
  const int64_t planes = args.batch * args.channels,
                enough = 4 * properties(device).multiprocessors;
  args.parts = 1;
  if (planes == 0 || planes >= enough) return;
  args.atomic = !deterministic;
  const int64_t parts = args.atomic ? (args.points + 31) / 32 : std::min(kShares, enough / planes);
  args.parts = static_cast<uint32_t>(std::clamp<int64_t>(parts, 1, kMostShares));
}

}  // namespace

void grid_sampler(const View& result, const View& input, const View& grid, int64_t mode,
                  int64_t padding, bool align_corners) {
  if (result.numel == 0) return;
  device::GridArgs args = arguments(input, grid, mode, padding, align_corners);
  args.out = array(result);
  const View read[] = {input, grid};
  run("grid_sampler", args, args.batch * args.points, result, read);
}

void grid_sampler_backward(const View& gx, const View& ggrid, const View& gy, const View& input,
                           const View& grid, int64_t mode, int64_t padding, bool align_corners) {
  device::GridArgs args = arguments(input, grid, mode, padding, align_corners);
  args.gy = array(gy);
  args.out = array(ggrid);
  const View read[] = {input, grid, gy};
  run("grid_sampler_grid", args, args.batch * args.points, ggrid, read);
  const Dense sums(gx.device, dtype_info(gx.dtype).compute, gx.sizes);
  kernels::fill(sums, Scalar(0.0));
  args.gx = sums.view().as<char>();
  share_planes(args, gx.device.index);
  run("grid_sampler_input", args, args.batch * args.channels * args.parts * 32, sums, read);
  kernels::copy(gx, sums);
}

}  // namespace taeda::cuda
