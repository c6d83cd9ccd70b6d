// What launches say of Views (walk.h).
#include "kernels/cuda/walk.h"

namespace taeda::cuda {

View real_part(const View& view, DimVector& strides) {
  if (!is_complex(view.dtype)) return view;
  strides = DimVector(view.strides);
  for (int64_t& stride : strides) stride *= 2;
  View real = view;
  real.dtype = to_real(view.dtype);
  real.strides = strides;
  return real;
}

Access access(const View& view, bool writes) {
  int64_t below = 0, above = item_size(view.dtype);
  for (size_t d = 0; d < view.sizes.size(); d++) {
    const int64_t span = (view.sizes[d] - 1) * view.strides[d] * item_size(view.dtype);
    (span < 0 ? below : above) += span;
  }
  if (view.numel == 0) below = above = 0;
  return {static_cast<const char*>(view.data) + below, above - below, writes};
}

}  // namespace taeda::cuda
