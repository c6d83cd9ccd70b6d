// im2col and col2im (text/unfold.cuh).
#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/text/unfold_args.h"
#include "kernels/cuda/windows.h"

namespace taeda::cuda {
namespace {

struct WindowSizes {
  IntSpan kernel, dilation, padding, stride;
};

// One dimension of an image of that size.
device::Windows windows_along(size_t i, int64_t size, const WindowSizes& of) {
  const auto item = [i](IntSpan values) { return values.size() == 1 ? values[0] : values[i]; };
  cpu::Windows w;
  w.in = size;
  w.kernel = item(of.kernel), w.dilation = item(of.dilation);
  w.padding = item(of.padding), w.stride = item(of.stride);
  w.out = (w.in + 2 * w.padding - w.dilation * (w.kernel - 1) - 1) / w.stride + 1;
  return device_windows(w);
}

// Of the last two dimensions of `image`.
device::UnfoldArgs arguments(const View& result, const View& x, const View& image,
                             const WindowSizes& of) {
  const size_t n = image.sizes.size();
  device::UnfoldArgs args{};
  args.h = windows_along(0, image.sizes[n - 2], of);
  args.w = windows_along(1, image.sizes[n - 1], of);
  args.kernel_w = device::divisor(static_cast<uint32_t>(args.w.kernel));
  args.result = static_cast<char*>(result.data);
  args.x = static_cast<const char*>(x.data);
  args.type = element_type(x.dtype);
  args.itemsize = static_cast<uint8_t>(item_size(x.dtype));
  return args;
}

void run(const std::string& kernel, device::UnfoldArgs& args, const View& result, const View& x) {
  launch(x.device.index, kernel, result.numel, &args, accesses({&result, 1}, {&x, 1}));
}

}  // namespace

void im2col(const View& result, const View& self, IntSpan kernel_size, IntSpan dilation,
            IntSpan padding, IntSpan stride) {
  if (result.numel == 0) return;
  device::UnfoldArgs args = arguments(result, self, self, {kernel_size, dilation, padding, stride});
  const int64_t taps = int64_t{args.h.kernel} * args.w.kernel;
  const int64_t size = taps * args.h.out * args.w.out;
  args.each = planes_of(result.numel / size, taps, args.h.out, args.w.out);
  run(kernel_name("im2col", mover(self.dtype), "_any"), args, result, self);
}

void col2im(const View& result, const View& self, IntSpan, IntSpan kernel_size, IntSpan dilation,
            IntSpan padding, IntSpan stride) {
  if (result.numel == 0) return;
  device::UnfoldArgs args =
      arguments(result, self, result, {kernel_size, dilation, padding, stride});
  const int64_t size = int64_t{args.h.in} * args.w.in;
  args.each = planes_of(result.numel / size, 1, args.h.in, args.w.in);
  const DType type = is_inexact(self.dtype) ? dtype_info(self.dtype).compute : DType::kFloat32;
  run(kernel_name("col2im", type, "_any"), args, result, self);
}

}  // namespace taeda::cuda
