// cross_entropy of rows, its gradient, and binary_cross_entropy (text/loss.cuh).
#include "device/launch.h"
#include "kernels/copy.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/text/loss_args.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

device::CrossEntropyArgs arguments(const View& x, const View& target, const View& weight,
                                   const View& lse, int64_t ignored, double smoothing) {
  device::CrossEntropyArgs args{};
  args.x = array(x), args.weight = array(weight), args.lse = array(lse);
  args.target = target.as<const int64_t>();
  args.n = static_cast<uint64_t>(x.sizes[0]);
  args.classes = x.sizes[1];
  args.ignored = ignored;
  args.smoothing = smoothing;
  args.message = {
      "cross_entropy(): Target {} is out of bounds. A target is the index of one of the input's {} "
      "classes.",
      x.sizes[1], static_cast<int32_t>(ErrorKind::kIndex)};
  args.threads = group_size(x.sizes[1], item_size(x.dtype), 0);
  return args;
}

void run(std::string_view kernel, const View& x, device::CrossEntropyArgs& args,
         const Accesses& touched) {
  launch(x.device.index, kernel_name(kernel, dtype_info(x.dtype).compute, "_any"),
         x.sizes[0] * args.threads, &args, touched);
}

}  // namespace

void cross_entropy(const View& loss, const View& lse, const View& total, const View& input,
                   const View& target, const View& weight, int64_t ignore_index,
                   std::string_view reduction, double label_smoothing) {
  device::CrossEntropyArgs args =
      arguments(input, target, weight, lse, ignore_index, label_smoothing);
  const int64_t n = input.sizes[0];
  const Dense rows(input.device, DType::kFloat64, {{2, n}});
  const Dense sums(input.device, DType::kFloat64, {{2}});
  args.sums = rows.view().as<double>();
  const bool each = reduction == "none";
  if (each) args.out = array(loss);
  const View written[] = {lse, rows.view(), each ? loss : View()}, read[] = {input, target, weight};
  if (n > 0) run("cross_entropy", input, args, accesses(written, read));
  const int64_t dim = 1;
  reduce({"sum", DType::kFloat64, 1}, &sums.view(), nullptr, rows, {&dim, 1});
  View sum = loss, scale = total;  // of no dimensions, as those are
  sum.data = sums.view().data, scale.data = sums.view().as<double>() + 1;
  sum.dtype = scale.dtype = DType::kFloat64;
  kernels::copy(total, scale);
  if (each) return;
  if (reduction != "mean") return kernels::copy(loss, sum);
  const auto run_loop = [](const char* name, const View& out, const View& a, const View& b) {
    const View inputs[] = {a, b};
    pointwise({{name, 0, false}, DType::kFloat64, DType::kFloat64, nullptr}, out, inputs);
  };
  if (label_smoothing == 0) return run_loop("div", loss, sum, scale);
  run_loop("div", sum, sum, scale);
  run_loop("div", scale, scale, scale);  // NaN where nothing weighs, else 1
  run_loop("mul", loss, sum, scale);
}

void cross_entropy_backward(const View& gx, const View& gy, const View& input, const View& target,
                            const View& weight, const View& lse, const View& total,
                            int64_t ignore_index, std::string_view reduction,
                            double label_smoothing) {
  if (gx.numel == 0) return;
  device::CrossEntropyArgs args =
      arguments(input, target, weight, lse, ignore_index, label_smoothing);
  args.out = array(gx), args.gy = array(gy), args.total = array(total);
  args.is_mean = reduction == "mean";
  args.has_each = reduction == "none";
  const View read[] = {input, target, weight, lse, gy, total};
  run("cross_entropy_backward", input, args, accesses({&gx, 1}, read));
}

}  // namespace taeda::cuda
