// Max pooling with its gradients, and adaptive max pooling (text/pool.cuh).
#include <limits>

#include "kernels/copy.h"
#include "kernels/cuda/windows.h"

namespace taeda::cuda {
namespace {

// What windows of integers have that hold none.
int64_t lowest(DType t) {
  switch (t) {
    case DType::kInt8:
      return std::numeric_limits<int8_t>::lowest();
    case DType::kInt16:
      return std::numeric_limits<int16_t>::lowest();
    case DType::kInt32:
      return std::numeric_limits<int32_t>::lowest();
    case DType::kInt64:
      return std::numeric_limits<int64_t>::lowest();
    default:
      return 0;
  }
}

void find_maxima(device::PoolArgs args, const View& values, const View& argmax, const View& indices,
                 const View& x) {
  args.result = static_cast<char*>(values.data);
  args.argmax = static_cast<char*>(argmax.data);
  args.bytes = argmax.dtype == DType::kUInt8;
  args.indices = static_cast<int64_t*>(indices.data);
  args.lowest = lowest(x.dtype);
  const View written[] = {values, argmax, indices};
  launch_windows("max_pool", x, args, written, {&x, 1});
}

}  // namespace

void max_pool(const View& values, const View& argmax, const View& input, IntSpan kernel_size,
              IntSpan stride, IntSpan padding, IntSpan dilation, bool, bool with_argmax) {
  const cpu::PoolShape s =
      cpu::pool_shape(input.sizes, values.sizes, kernel_size, stride, padding, dilation);
  find_maxima(pool_arguments(s, Each::kResult), values, with_argmax ? argmax : View(), View(),
              input);
}
void max_pool_with_indices(const View& values, const View& indices, const View& input,
                           IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                           bool) {
  const cpu::PoolShape s =
      cpu::pool_shape(input.sizes, values.sizes, kernel_size, stride, padding, dilation);
  find_maxima(pool_arguments(s, Each::kResult), values, View(), indices, input);
}
void adaptive_max_pool(const View& values, const View& indices, const View& input,
                       IntSpan output_size) {
  device::PoolArgs args = adaptive_arguments(input, values, output_size.size(), Each::kResult);
  find_maxima(args, values, View(), indices, input);
}

void max_pool_scatter(const View& result, const View& grad_output, const View& argmax,
                      IntSpan sizes, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                      IntSpan dilation, bool) {
  const cpu::PoolShape s =
      cpu::pool_shape(sizes, grad_output.sizes, kernel_size, stride, padding, dilation);
  device::PoolArgs args = pool_arguments(s, Each::kInput);
  args.result = static_cast<char*>(result.data);
  args.argmax = static_cast<char*>(argmax.data);
  args.bytes = argmax.dtype == DType::kUInt8;
  const View read[] = {grad_output, argmax};
  launch_windows("max_pool_scatter", grad_output, args, {&result, 1}, read);
}

}  // namespace taeda::cuda
