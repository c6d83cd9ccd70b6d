// Arithmetic on sizes and strides, checked for overflow: nothing here wraps around, whatever
// integers users pass. Messages are PyTorch's.
#pragma once

#include <cstdint>
#include <string_view>

#include "taeda/dtype.h"
#include "taeda/small_vector.h"

namespace taeda {

// a * b; RuntimeError naming `what` on overflow.
int64_t checked_mul(int64_t a, int64_t b, std::string_view what);
int64_t checked_add(int64_t a, int64_t b, std::string_view what);

// Number of elements; RuntimeError for negative sizes and on overflow.
int64_t checked_numel(IntSpan sizes);
// Elements times bytes each, likewise checked: what a dense tensor of these sizes takes.
int64_t checked_nbytes(IntSpan sizes, DType dtype);

// Row-major strides. Dimensions of size 0 count as 1, as in PyTorch. Checks as checked_numel.
DimVector contiguous_strides(IntSpan sizes);
// Strides of channels-last layout for 3 (n c l is not one: RuntimeError), 4 or 5 dimensions.
DimVector channels_last_strides(IntSpan sizes);
bool is_contiguous_layout(IntSpan sizes, IntSpan strides);
// Channels-last for 4 (n h w c) and 5 dimensions; false for others.
bool is_channels_last_layout(IntSpan sizes, IntSpan strides);
// Whether strides grow in the order of channels last, with gaps or without; not where they are
// row-major as well.
bool resembles_channels_last(IntSpan sizes, IntSpan strides);
// Whether the elements fill their memory range without gaps or overlap, in any order of dimensions.
bool is_dense_layout(IntSpan sizes, IntSpan strides);
// Strides for a fresh tensor that keep the order of dimensions of an existing one (PyTorch's
// preserve_format): its own strides where it is dense, else the same order made dense.
DimVector preserved_strides(IntSpan sizes, IntSpan strides);

// The common shape; RuntimeError "The size of tensor a (3) must match the size of tensor b (4)
// ...".
DimVector broadcast_shapes(IntSpan a, IntSpan b);
bool is_expandable_to(IntSpan sizes, IntSpan target);

// Bytes from the start of the storage up to the end of the last element that this layout reaches; 0
// for no elements. RuntimeError for negative sizes, strides or offset, and on overflow.
int64_t storage_bytes_needed(IntSpan sizes, IntSpan strides, int64_t offset, DType dtype);

// dim in [-ndim, ndim) as one in [0, ndim); IndexError otherwise. Zero dimensions count as one.
int64_t wrap_dim(int64_t dim, int64_t ndim);

// Whether two elements of one layout share memory. kUnknown: not decided cheaply.
enum class Overlap : uint8_t { kNo, kYes, kUnknown };
Overlap internal_overlap(IntSpan sizes, IntSpan strides);

}  // namespace taeda
