#include "ops/index_rules.h"

#include <limits>

#include "core/layout.h"
#include "taeda/warning.h"

namespace taeda::rules {
namespace {

bool is_index_type(DType t) { return t == DType::kInt64 || t == DType::kInt32; }
int64_t at_least_1d(const Tensor& t) { return t.dim() ? t.dim() : 1; }
int64_t size_at(const Tensor& t, int64_t d) {
  return t.dim() ? t.sizes()[static_cast<size_t>(d)] : 1;
}

// Whether index is no larger than `other` in every dimension but `except`.
bool fits(const Tensor& index, const Tensor& other, int64_t except) {
  for (int64_t d = 0; d < at_least_1d(index); d++) {
    if (d != except && size_at(index, d) > size_at(other, d)) return false;
  }
  return true;
}

}  // namespace

DimVector resized(IntSpan sizes, int64_t dim, int64_t size) {
  DimVector out = sizes;
  if (!out.empty()) out[static_cast<size_t>(dim)] = size;
  return out;
}

DimVector strides_like(const Tensor& self) {
  if (self.is_contiguous()) return contiguous_strides(self.sizes());
  return preserved_strides(self.sizes(), self.strides());
}

bool has_order(std::string_view op, const Tensor& self) {
  const DType t = self.dtype();
  TD_CHECK_IMPLEMENTED(!is_complex(t) && (is_integral(t) || !is_storage_type(t)),
                       "\"{}\" not implemented for '{}'", op, scalar_type_name(t));
  return true;
}

bool sortable(std::string_view op, IntSpan sizes, int64_t dim) {
  TD_CHECK_IMPLEMENTED(
      sizes.empty() || sizes[static_cast<size_t>(dim)] <= std::numeric_limits<uint32_t>::max(),
      "{}: more than 2^32 - 1 elements along dimension {}", op, dim);
  return true;
}

bool is_byte_condition(DType t) {
  if (t != DType::kUInt8) return false;
  TD_WARN_ONCE("where with a uint8 condition is deprecated, use a condition of torch.bool");
  return true;
}

bool gather_fits(const Tensor& self, int64_t dim, const Tensor& index) {
  if (index.numel() == 0) return true;
  TD_CHECK(is_index_type(index.dtype()), "gather(): Expected dtype int32/int64 for index");
  TD_CHECK(
      at_least_1d(self) == at_least_1d(index),
      "Index tensor must have the same number of dimensions as input tensor: got {} and {}\n"
      "Fix: index as many dimensions as the input has: index.unsqueeze, or index_select for one",
      index.dim(), self.dim());
  TD_CHECK(fits(index, self, dim),
           "Size does not match at dimension {} expected index {} to be no larger than self {} "
           "apart from dimension {}",
           dim, index.sizes(), self.sizes(), dim);
  return true;
}

bool scatter_value_fits(std::string_view op, const Tensor& self, int64_t dim, const Tensor& index) {
  if (index.numel() == 0) return true;
  TD_CHECK(is_index_type(index.dtype()), "{}(): Expected dtype int32/int64 for index", op);
  TD_CHECK(at_least_1d(self) == at_least_1d(index),
           "Index tensor must have the same number of dimensions as self tensor");
  TD_CHECK(fits(index, self, dim),
           "Expected index {} to be no larger than self {} apart from dimension {}", index.sizes(),
           self.sizes(), dim);
  return true;
}
bool scatter_fits(std::string_view op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& src) {
  TD_CHECK(self.dtype() == src.dtype(), "{}(): Expected self.dtype to be equal to src.dtype", op);
  if (index.numel() == 0) return true;
  TD_CHECK(is_index_type(index.dtype()), "{}(): Expected dtype int32/int64 for index", op);
  TD_CHECK(at_least_1d(self) == at_least_1d(index),
           "Index tensor must have the same number of dimensions as self tensor");
  TD_CHECK_INDEX(src.dim() == 0 || src.dim() >= index.dim() || src.numel() == 0,
                 "{}(): expected src with the {} dimensions of index, got {}", op, index.dim(),
                 src.sizes());
  TD_CHECK(at_least_1d(src) == at_least_1d(index),
           "Index tensor must have the same number of dimensions as src tensor");
  TD_CHECK(fits(index, self, dim) && fits(index, src, -1),
           "Expected index {} to be no larger than self {} apart from dimension {} and to be no "
           "larger size than src {}",
           index.sizes(), self.sizes(), dim, src.sizes());
  return true;
}

namespace {
void check_vector(std::string_view op, const Tensor& self, const Tensor& index,
                  const Tensor& source) {
  TD_CHECK_INDEX(index.dim() <= 1, "{}(): Index should have dimension 1 or 0 (got {})", op,
                 index.dim());
  TD_CHECK(is_index_type(index.dtype()), "{}(): Expected dtype int32/int64 for index", op);
  TD_CHECK(self.dtype() == source.dtype(),
           "{}(): self ({}) and source ({}) must have the same scalar type", op,
           scalar_type_name(self.dtype()), scalar_type_name(source.dtype()));
}
bool same_slices(const Tensor& self, const Tensor& source, int64_t dim) {
  bool same = at_least_1d(self) == at_least_1d(source);
  for (int64_t d = 0; same && d < at_least_1d(self); d++)
    same = d == dim || size_at(self, d) == size_at(source, d);
  return same;
}
}  // namespace

bool index_add_fits(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_vector("index_add_", self, index, source);
  TD_CHECK(source.dim() > 0 || index.numel() == 1 || dim == 0,
           "index_add_(): Indexing dim {} is out of bounds of the source tensor with dim 0", dim);
  TD_CHECK_INDEX(source.dim() > 0 || index.numel() == 1,
                 "Dimension specified as {} but tensor has no dimensions", dim);
  TD_CHECK(dim >= source.dim() || index.numel() == source.size(dim),
           "index_add_(): Number of indices ({}) should be equal to source.size(dim): ({}), for "
           "dim: {}",
           index.numel(), source.size(dim), dim);
  TD_CHECK(self.dim() == source.dim() && same_slices(self, source, dim),
           "source tensor shape must match self tensor shape, excluding the specified dimension. "
           "Got self.shape = {} source.shape = {}",
           self.sizes(), source.sizes());
  return no_overlap(self, index, source);
}

bool index_copy_fits(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_vector("index_copy_", self, index, source);
  TD_CHECK_INDEX(source.dim() > 0 || index.numel() == 1,
                 "index_copy_(): When source is scalar, index should have one element (got {})",
                 index.numel());
  TD_CHECK_INDEX(self.dim() == source.dim() || self.dim() == 0 || source.dim() == 0,
                 "index_copy_(): When source and destination are not scalars, their dimensionality "
                 "must match. Source dimensionality ({}), destination dimensionality ({})",
                 source.dim(), self.dim());
  TD_CHECK(same_slices(self, source, dim),
           "index_copy_(): Source/destination tensor must have same slice shapes. Destination has "
           "sizes {}, source {}, the index is along dimension {}",
           self.sizes(), source.sizes(), dim);
  TD_CHECK_INDEX(index.numel() == size_at(source, dim),
                 "index_copy_(): Number of indices ({}) should be equal to source.size(dim) ({})",
                 index.numel(), size_at(source, dim));
  return no_overlap(self, index, source);
}

bool no_overlap(const Tensor& self, const Tensor& index, const Tensor& source) {
  check_no_overlap(self, index);
  check_no_overlap(self, source);
  return true;
}

std::string tensor_type(DType t) { return "torch." + std::string(scalar_type_name(t)) + "Tensor"; }

}  // namespace taeda::rules
