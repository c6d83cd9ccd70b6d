// nn.functional.interpolate: the operator of a mode and of as many dimensions as the input has.
#include <algorithm>
#include <cmath>

#include "op/_upsample_bicubic2d_aa.h"
#include "op/_upsample_bilinear2d_aa.h"
#include "op/_upsample_nearest_exact1d.h"
#include "op/_upsample_nearest_exact2d.h"
#include "op/_upsample_nearest_exact3d.h"
#include "op/adaptive_avg_pool1d.h"
#include "op/adaptive_avg_pool2d.h"
#include "op/adaptive_avg_pool3d.h"
#include "op/upsample_bicubic2d.h"
#include "op/upsample_bilinear2d.h"
#include "op/upsample_linear1d.h"
#include "op/upsample_nearest1d.h"
#include "op/upsample_nearest2d.h"
#include "op/upsample_nearest3d.h"
#include "op/upsample_trilinear3d.h"

namespace taeda::impl {

namespace {

using Scales = std::optional<Span<const double>>;

DimVector scaled_sizes(const Tensor& input, const Scales& scales) {
  TD_CHECK_VALUE(static_cast<int64_t>(scales->size()) == std::max<int64_t>(input.dim() - 2, 0),
                 "Input and scale_factor must have the same number of spatial dimensions, but got "
                 "input of size {} and scale_factor of {} numbers. Please provide input tensor in "
                 "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.",
                 input.sizes(), static_cast<int64_t>(scales->size()));
  DimVector sizes;
  for (size_t d = 0; d < scales->size(); d++) {
    const double size = std::floor(static_cast<double>(input.sizes()[d + 2]) * (*scales)[d]);
    TD_CHECK(std::abs(size) < 0x1p63, "interpolate: scale_factor gives no size, got {}",
             (*scales)[d]);
    sizes.push_back(static_cast<int64_t>(size));
  }
  return sizes;
}

}  // namespace

Tensor interpolate(const Tensor& input, OptInts size, Scales scale_factor, std::string_view mode,
                   OptBool align_corners, OptBool recompute_scale_factor, bool antialias) {
  const DimVector sizes = size ? DimVector(*size) : scaled_sizes(input, scale_factor);
  const bool align = align_corners.value_or(false);
  const bool by_sizes = size || recompute_scale_factor.value_or(false);
  const auto scale = [&](size_t d) {
    return by_sizes ? OptDouble() : OptDouble((*scale_factor)[d]);
  };
  switch (input.dim()) {
    case 3:
      if (mode == "area") return op::adaptive_avg_pool1d(input, sizes);
      if (mode == "nearest") return op::upsample_nearest1d(input, sizes, scale(0));
      if (mode == "nearest-exact") return op::_upsample_nearest_exact1d(input, sizes, scale(0));
      if (mode == "linear") return op::upsample_linear1d(input, sizes, align, scale(0));
      break;
    case 4: {
      const OptDouble h = scale(0), w = scale(1);
      if (mode == "area") return op::adaptive_avg_pool2d(input, sizes);
      if (mode == "nearest") return op::upsample_nearest2d(input, sizes, h, w);
      if (mode == "nearest-exact") return op::_upsample_nearest_exact2d(input, sizes, h, w);
      if (mode == "bilinear")
        return antialias ? op::_upsample_bilinear2d_aa(input, sizes, align, h, w)
                         : op::upsample_bilinear2d(input, sizes, align, h, w);
      if (mode == "bicubic")
        return antialias ? op::_upsample_bicubic2d_aa(input, sizes, align, h, w)
                         : op::upsample_bicubic2d(input, sizes, align, h, w);
      break;
    }
    case 5: {
      const OptDouble d = scale(0), h = scale(1), w = scale(2);
      if (mode == "area") return op::adaptive_avg_pool3d(input, sizes);
      if (mode == "nearest") return op::upsample_nearest3d(input, sizes, d, h, w);
      if (mode == "nearest-exact") return op::_upsample_nearest_exact3d(input, sizes, d, h, w);
      if (mode == "trilinear") return op::upsample_trilinear3d(input, sizes, align, d, h, w);
      break;
    }
    default:
      break;
  }
  fail(ErrorKind::kNotImplemented,
       "Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D) for the modes: nearest | "
       "linear | bilinear | bicubic | trilinear | area | nearest-exact (got {})",
       input.dim(), mode);
}

}  // namespace taeda::impl
