// Where the maxima of windows are in their planes, and gradients by that (text/pool.cuh).
#include "device/launch.h"
#include "kernels/copy.h"
#include "kernels/cuda/indexing.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/windows.h"
#include "kernels/product.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

// A warp goes along a plane in less time than their indices are sorted in, but for few large ones.
// From where on is a guess, measured on no card.
constexpr int64_t kFewPlanes = 32, kLargePlane = 8192;

void scatter_planes(const View& result, const View& grad_output, const View& indices,
                    const device::PoolArgs& args) {
  const auto planes = static_cast<int64_t>(args.each.count);
  const DimVector in{planes, args.in}, out{planes, args.out}, in_strides{args.in, 1},
      out_strides{args.out, 1};
  const auto reshaped = [](View v, IntSpan sizes, IntSpan strides) {
    v.sizes = sizes, v.strides = strides;
    return v;
  };
  const View to = reshaped(result, in, in_strides), from = reshaped(grad_output, out, out_strides);
  const View index = reshaped(indices, out, out_strides);
  Indices what{to, {&index, 1}, 0, 2, false, false, false, args.message.text, ErrorKind::kIndex};
  what.is_scatter = true;
  what.along = 1;
  what.dim = args.message.dim;
  index_accumulate(what, from);
}

}  // namespace

void max_pool_indices(const View& result, const View& argmax, IntSpan sizes, IntSpan kernel_size,
                      IntSpan stride, IntSpan padding, IntSpan dilation, bool) {
  const cpu::PoolShape s =
      cpu::pool_shape(sizes, argmax.sizes, kernel_size, stride, padding, dilation);
  device::PoolArgs args = pool_arguments(s, Each::kResult);
  args.indices = static_cast<int64_t*>(result.data);
  args.argmax = static_cast<char*>(argmax.data);
  args.bytes = argmax.dtype == DType::kUInt8;
  launch_windows("max_pool_indices", argmax, args, {&result, 1}, {&argmax, 1});
}

void pool_scatter(const View& result, const View& grad_output, const View& indices, IntSpan sizes,
                  int64_t spatial) {
  if (result.numel == 0) return;
  kernels::fill(result, Scalar(0.0));
  if (indices.numel == 0) return;
  const size_t from = sizes.size() - static_cast<size_t>(spatial), to = sizes.size();
  device::PoolArgs args{};
  args.in = kernels::product(sizes.slice(from, to - from));
  args.out = kernels::product(indices.sizes.slice(from, to - from));
  args.each.count = static_cast<uint64_t>(indices.numel / args.out);
  args.result = static_cast<char*>(result.data);
  args.indices = static_cast<int64_t*>(indices.data);
  args.message = {"max pool backward: index {} out of range [0, {})", args.in,
                  static_cast<int32_t>(ErrorKind::kIndex)};
  const auto planes = static_cast<int64_t>(args.each.count);
  if (planes < kFewPlanes && args.out > kLargePlane)
    return scatter_planes(result, grad_output, indices, args);
  const View read[] = {grad_output, indices};
  launch_windows("pool_scatter", grad_output, args, {&result, 1}, read, 32);
}

}  // namespace taeda::cuda
