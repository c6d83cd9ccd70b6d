// Resizing images, and the gradient (text/resample.cuh).
#include "kernels/cpu/image/resample_axis.h"

#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/resample_bytes.h"
#include "kernels/cuda/text/resample_args.h"
#include "kernels/cuda/windows.h"

namespace taeda::cuda {
namespace {

// What is resized by one call: `in` and `out` are the sizes that taps lead from and to.
struct Resizing {
  const View &result, &x;
  IntSpan in, out;
  std::string_view mode;
  bool align_corners;
  Span<const double> scales;
};

template <class A>
void run(const std::string& kernel, const Resizing& what) {
  const auto& [result, x, in, out, mode, align_corners, scales] = what;
  device::ResampleArgs<A> args{};
  const auto axes = cpu::resample_axes<A>(in, out, mode, align_corners, scales);
  std::copy_n(axes.begin(), 3, args.axes);
  const size_t n = result.sizes.size();
  const auto size = [&](size_t from_last) {
    return from_last + 2 < n ? result.sizes[n - 1 - from_last] : 1;
  };
  args.each = planes_of(result.sizes[0] * result.sizes[1], size(2), size(1), size(0));
  args.result = static_cast<char*>(result.data);
  args.x = static_cast<const char*>(x.data);
  args.type = element_type(x.dtype);
  args.itemsize = static_cast<uint8_t>(item_size(x.dtype));
  launch(x.device.index, kernel, result.numel, &args, accesses({&result, 1}, {&x, 1}));
}

}  // namespace

void resample(const View& result, const View& input, IntSpan, std::string_view mode,
              bool align_corners, double scale_d, double scale_h, double scale_w) {
  if (result.numel == 0) return;
  const double scales[] = {scale_d, scale_h, scale_w};
  const Resizing what{result, input, input.sizes, result.sizes, mode, align_corners, scales};
  if (mode.starts_with("nearest"))
    return run<float>(kernel_name("resample_nearest", mover(input.dtype), "_any"), what);
  if (input.dtype == DType::kUInt8)
    return resample_bytes(
        result, input,
        cpu::resample_axes<double>(input.sizes, result.sizes, mode, align_corners, scales));
  const std::string kernel = kernel_name("resample", input.dtype, "_any");
  input.dtype == DType::kFloat64 ? run<double>(kernel, what) : run<float>(kernel, what);
}

void resample_backward(const View& result, const View& grad_output, IntSpan, std::string_view mode,
                       bool align_corners, double scale_d, double scale_h, double scale_w) {
  if (result.numel == 0) return;
  if (mode == "nearest") mode = "nearest-whole";  // as in PyTorch, whatever the result was made by
  const double scales[] = {scale_d, scale_h, scale_w};
  const Resizing what{result, grad_output,   result.sizes, grad_output.sizes,
                      mode,   align_corners, scales};
  if (result.dtype == DType::kFloat64)
    run<double>("resample_backward_f64_any", what);
  else
    run<float>("resample_backward_f32_any", what);
}

}  // namespace taeda::cuda
