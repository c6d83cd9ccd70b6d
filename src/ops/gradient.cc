// torch.gradient: derivatives along dimensions by finite differences.
#include "op/_gradient_by_coordinates.h"
#include "op/_gradient_by_distance.h"
#include "op/to_dtype.h"
#include "ops/rules.h"

namespace taeda::impl {

namespace {

// `along` of each dimension and what stands in `spacing` for it.
template <class Spacing, class Along>
TensorList derivatives(const Tensor& self, const Spacing& spacing, const OptInts& dim,
                       const Along& along) {
  DimVector dims;
  if (dim) {
    dims = DimVector(*dim);
  } else {
    for (int64_t d = 0; d < self.dim(); d++) dims.push_back(d);
  }
  TD_CHECK(spacing.size() == dims.size(),
           "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal "
           "to 'self.dim() = {}', since dim argument was not given, but got a list of length {}",
           self.dim(), static_cast<int64_t>(spacing.size()));
  const Tensor y = is_floating(self.dtype()) || is_complex(self.dtype())
                       ? self
                       : op::to_dtype(self, default_dtype(), false, std::nullopt);
  TensorList result;
  for (size_t i = 0; i < dims.size(); i++) result.push_back(along(y, dims[i], spacing[i]));
  return result;
}

}  // namespace

TensorList gradient(const Tensor& self, Span<const double> spacing, OptInts dim,
                    int64_t edge_order) {
  return derivatives(self, spacing, dim, [&](const Tensor& y, int64_t d, double distance) {
    return op::_gradient_by_distance(y, d, distance, edge_order);
  });
}

TensorList gradient_coordinates(const Tensor& self, TensorSpan spacing, OptInts dim,
                                int64_t edge_order) {
  return derivatives(self, spacing, dim, [&](const Tensor& y, int64_t d, const Tensor& points) {
    return op::_gradient_by_coordinates(y, d, points, edge_order);
  });
}

}  // namespace taeda::impl
