#include "kernels/cuda/copy.h"

#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cuda/pointwise.h"

namespace taeda::cuda {
namespace {

// The kernels copy_TYPE are pointwise ones with a functor that gives what it gets.
constexpr Loop kSame{"copy", 0, false};

}  // namespace

void copy(const View& dst, const View& src) {
  const DType compute = dtype_info(src.dtype).compute;
  pointwise({kSame, compute, compute, nullptr}, dst, {&src, 1});
}

void fill(const View& dst, const Scalar& value) {
  alignas(16) char number[16];
  cpu::fill({number, dst.dtype, {}, {}, 1, true, DeviceType::kCPU}, value);
  DimVector strides;
  for (size_t d = 0; d < dst.sizes.size(); d++) strides.push_back(0);
  copy(dst, {number, dst.dtype, dst.sizes, strides, dst.numel, true, DeviceType::kCPU});
}

}  // namespace taeda::cuda
