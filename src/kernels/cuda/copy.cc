#include "kernels/cuda/copy.h"

#include "kernels/cuda/number.h"
#include "kernels/cuda/pointwise.h"

namespace taeda::cuda {
namespace {

// The kernels copy_TYPE are pointwise ones with a functor that gives what it gets.
constexpr DTypeSet kListed = dtypes_of(DTypeKind::kInteger) | dtypes_of(DTypeKind::kFloating) |
                             dtypes_of(DTypeKind::kComplex);
constexpr Loop kSame{"copy", 0, false, kListed};

}  // namespace

void copy(const View& dst, const View& src) {
  const DType compute = dtype_info(src.dtype).compute;
  pointwise({kSame, compute, compute, nullptr}, dst, {&src, 1});
}

void fill(const View& dst, const Scalar& value) {
  const Number number(dst.dtype, value);
  const DimVector strides(dst.sizes.size(), 0);
  copy(dst, {number.view.data, dst.dtype, dst.sizes, strides, dst.numel, true, DeviceType::kCPU});
}

}  // namespace taeda::cuda
