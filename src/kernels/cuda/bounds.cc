#include "kernels/cuda/bounds.h"

#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/index_args.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {

void check_bounds(const View& index, const Bounds& bounds) {
  if (index.numel == 0) return;
  device::BoundsArgs args{};
  WalkPlan<1> walk;
  for (size_t d = 0; d < index.sizes.size(); d++)
    walk.add(index.sizes[d], {index.strides[d] * item_size(index.dtype)});
  walk.sort_by(0);
  args.walk = walk.walk();
  args.index = static_cast<const char*>(index.data);
  args.size = bounds.size;
  args.except = bounds.except.value_or(0);
  args.has_except = bounds.except.has_value();
  const auto error = static_cast<int32_t>(bounds.error);
  args.message = {bounds.message, bounds.dim.value_or(bounds.size), error};
  args.below = {bounds.below, args.message.dim, error};
  args.type = element_type(index.dtype);
  const Access touched[] = {access(index, false)};
  launch(index.device.index, "check_bounds_i64_any", index.numel, &args, touched);
}

}  // namespace taeda::cuda
