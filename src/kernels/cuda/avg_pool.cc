// Average pooling, plain and adaptive, with its gradient (text/avg_pool.cuh).
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/windows.h"
#include "kernels/optional.h"

namespace taeda::cuda {
namespace {

const DimVector kOne{1};

void average(device::PoolArgs args, const View& result, const View& x, OptInt divisor,
             std::string_view kernel) {
  args.result = static_cast<char*>(result.data);
  args.divisor = divisor.value_or(0);
  launch_windows(kernel, x, args, {&result, 1}, {&x, 1});
}

// Whether each of the last dimensions stays or becomes one element: a mean over `dims`.
bool is_mean(const View& input, const View& result, size_t spatial, DimVector& dims) {
  for (size_t d = input.sizes.size() - spatial; d < input.sizes.size(); d++) {
    if (input.sizes[d] == result.sizes[d]) continue;
    if (result.sizes[d] != 1) return false;
    dims.push_back(static_cast<int64_t>(d));
  }
  return !dims.empty();
}

}  // namespace

void avg_pool(const View& result, const View& input, IntSpan kernel_size, IntSpan stride,
              IntSpan padding, bool, bool count_include_pad, OptInt divisor_override) {
  device::PoolArgs args =
      pool_arguments(cpu::pool_shape(input.sizes, result.sizes, kernel_size, stride, padding, kOne),
                     Each::kResult);
  args.include_padding = count_include_pad;
  average(args, result, input, divisor_override, "avg_pool");
}
void avg_pool1d(const View& result, const View& input, IntSpan kernel_size, IntSpan stride,
                IntSpan padding, bool ceil_mode, bool count_include_pad) {
  avg_pool(result, input, kernel_size, stride, padding, ceil_mode, count_include_pad, std::nullopt);
}

void avg_pool_backward(const View& result, const View& grad_output, IntSpan, IntSpan kernel_size,
                       IntSpan stride, IntSpan padding, bool, bool count_include_pad,
                       OptInt divisor_override) {
  device::PoolArgs args = pool_arguments(
      cpu::pool_shape(result.sizes, grad_output.sizes, kernel_size, stride, padding, kOne),
      Each::kInput);
  args.include_padding = count_include_pad;
  average(args, result, grad_output, divisor_override, "avg_pool_backward");
}
void avg_pool1d_backward(const View& result, const View& grad_output, IntSpan input_size,
                         IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                         bool count_include_pad) {
  avg_pool_backward(result, grad_output, input_size, kernel_size, stride, padding, ceil_mode,
                    count_include_pad, std::nullopt);
}

void adaptive_avg_pool(const View& result, const View& input, IntSpan output_size) {
  if (result.numel == 0) return;
  DimVector dims;
  if (is_mean(input, result, output_size.size(), dims)) {
    const double count = static_cast<double>(input.numel / result.numel);
    return reduce({"sum", dtype_info(input.dtype).compute, count}, &result, nullptr, input, dims);
  }
  average(adaptive_arguments(input, result, output_size.size(), Each::kResult), result, input,
          std::nullopt, "avg_pool");
}
void adaptive_avg_pool_backward(const View& result, const View& grad_output, IntSpan) {
  // A dimension that stays does not matter, so three are as good as fewer.
  const size_t spatial = std::min<size_t>(3, result.sizes.size() - 1);
  average(adaptive_arguments(result, grad_output, spatial, Each::kInput), result, grad_output,
          std::nullopt, "avg_pool_backward");
}

}  // namespace taeda::cuda
