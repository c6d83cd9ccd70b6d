#include "ops/sparse/dense.h"

#include "core/layout.h"
#include "op/add.h"
#include "op/arange.h"
#include "op/bincount.h"
#include "op/cat.h"
#include "op/cumsum.h"
#include "op/floor_divide.h"
#include "op/index_add.h"
#include "op/index_select.h"
#include "op/mul.h"
#include "op/ne.h"
#include "op/reshape.h"
#include "op/sub.h"
#include "op/to_dtype.h"
#include "op/zeros.h"

namespace taeda::sparse {
namespace {

TensorOptions options(DType dtype, Device device) {
  TensorOptions made(dtype);
  made.device = device;
  return made;
}

}  // namespace

Tensor zeros(IntSpan sizes, DType dtype, Device device) {
  return op::zeros(sizes, options(dtype, device));
}
Tensor add(const Tensor& a, const Tensor& b) { return op::add(a, b, Scalar(int64_t{1})); }
Tensor mul(const Tensor& a, const Tensor& b) { return op::mul(a, b); }
Tensor mul(const Tensor& a, int64_t factor) { return op::mul(a, Tensor(factor)); }
Tensor sub(const Tensor& a, const Tensor& b) { return op::sub(a, b, Scalar(int64_t{1})); }
Tensor divided(const Tensor& a, int64_t divisor) { return op::floor_divide(a, Tensor(divisor)); }
Tensor take(const Tensor& t, const Tensor& rows) { return op::index_select(t, 0, rows); }

Tensor sum_rows(const Tensor& values, const Tensor& numbers, int64_t n) {
  const bool counted = values.dtype() == DType::kBool;
  const Tensor terms = counted ? cast(values, DType::kInt64) : values;
  const Tensor none =
      zeros(join({n}, slice(values.sizes(), 1, values.dim())), terms.dtype(), values.device());
  const Tensor sums = op::index_add(none, 0, numbers, terms, Scalar(int64_t{1}));
  return counted ? op::ne(sums, Tensor(int64_t{0})) : sums;
}

Tensor as_column(const Tensor& t, const Tensor& like) {
  DimVector sizes(static_cast<size_t>(std::max<int64_t>(like.dim(), 1)), 1);
  sizes[0] = t.numel();
  return op::reshape(t, sizes);
}

Tensor arange(int64_t n, Device device) {
  return op::arange(Scalar(n), options(DType::kInt64, device));
}
Tensor cast(const Tensor& t, DType dtype) { return op::to_dtype(t, dtype, false, std::nullopt); }

Tensor offsets_of(const Tensor& numbers, int64_t n) {
  const Tensor counts = op::bincount(numbers, Tensor(), n);
  const Tensor before = zeros({1}, DType::kInt64, numbers.device());
  return op::cat(TensorList{before, op::cumsum(counts, 0, std::nullopt)}, 0);
}

DimVector slice(IntSpan sizes, int64_t first, int64_t last) {
  DimVector part;
  for (int64_t i = first; i < last; i++) part.push_back(sizes[static_cast<size_t>(i)]);
  return part;
}

DimVector join(IntSpan a, IntSpan b) {
  DimVector all(a);
  for (const int64_t n : b) all.push_back(n);
  return all;
}

int64_t product(IntSpan sizes) { return checked_numel(sizes); }

}  // namespace taeda::sparse
