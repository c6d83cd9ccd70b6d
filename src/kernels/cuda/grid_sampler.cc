// grid_sampler and its gradients (text/grid.cuh).
#include "device/launch.h"
#include "kernels/copy.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/grid_args.h"

namespace taeda::cuda {
namespace {

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
  run("grid_sampler_input", args, args.batch * args.channels * 32, sums, read);
  kernels::copy(gx, sums);
}

}  // namespace taeda::cuda
