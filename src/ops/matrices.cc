#include "ops/matrices.h"

#include <algorithm>
#include <utility>

#include "core/layout.h"
#include "ops/allocate.h"
#include "ops/dispatch.h"

namespace taeda {

Tensor matrix_input(const Tensor& t) {
  if (!t.defined() || t.impl()->contiguous || t.dim() < 2) return dense_input(t);
  DimVector sizes(t.sizes()), strides(t.strides());
  const size_t last = sizes.size() - 1;
  std::swap(sizes[last], sizes[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return is_contiguous_layout(sizes, strides) ? t : dense_input(t);
}

Tensor empty_column_major(IntSpan sizes, DType dtype, Device device) {
  if (sizes.size() < 2) return empty_tensor(sizes, dtype, device);
  const size_t rows = sizes.size() - 2;
  DimVector strides(sizes.size(), 1);
  strides[rows + 1] = std::max<int64_t>(1, sizes[rows]);
  int64_t step = strides[rows + 1] * std::max<int64_t>(1, sizes[rows + 1]);
  for (size_t i = rows; i-- > 0; step *= std::max<int64_t>(1, sizes[i])) strides[i] = step;
  return empty_strided_tensor(sizes, strides, dtype, device);
}

}  // namespace taeda
