// Contracts of the index operators, called from the table as rules.NAME(...): they return true or
// raise PyTorch's error.
#pragma once

#include <string>

#include "taeda/tensor.h"

namespace taeda::rules {

// `sizes` with another size at `dim`; a 0-d tensor stays one.
DimVector resized(IntSpan sizes, int64_t dim, int64_t size);
// Strides of a result that keeps the order of self's dimensions in memory.
DimVector strides_like(const Tensor& self);
// Whether elements have an order, which complex numbers and the eight-bit floats have not.
bool has_order(std::string_view op, const Tensor& self);
// Lines longer than this are not sorted: indices are counted in 32 bits.
bool sortable(std::string_view op, IntSpan sizes, int64_t dim);

// Whether a condition is uint8, which is deprecated: warns once.
bool is_byte_condition(DType t);
bool gather_fits(const Tensor& self, int64_t dim, const Tensor& index);
bool scatter_fits(std::string_view op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& src);
bool scatter_value_fits(std::string_view op, const Tensor& self, int64_t dim, const Tensor& index);
// A vector of indices, and a source that has self's sizes except along `dim`; index_copy_ takes 0-d
// tensors for vectors of one element.
bool index_add_fits(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
bool index_copy_fits(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
// For operators that write self in another order than they read the others.
bool no_overlap(const Tensor& self, const Tensor& index, const Tensor& source);
// "torch.FloatTensor"
std::string tensor_type(DType t);

}  // namespace taeda::rules
