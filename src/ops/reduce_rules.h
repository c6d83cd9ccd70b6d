// Rules that the table's reduction, normalisation, index and loss entries call as rules.NAME(...):
// result sizes and dtypes, and checks with PyTorch's messages (those return true or raise).
#pragma once

#include <string>

#include "taeda/tensor.h"

namespace taeda::rules {

// --- dtypes ---
// What sum and its relatives return: `dtype` if given, else int64 for integers and bool.
DType sum_dtype(DType self, OptDType dtype);
// Whether a mean of `self` is defined: it, or `dtype`, is floating or complex.
bool inexact_or_given(DType self, OptDType dtype);
// Statistics of half and bfloat16 rows are float32.
DType statistics_dtype(DType t);
// The dtype's machine epsilon.
double epsilon(DType t);
// "Float", as PyTorch's messages name dtypes.
std::string type_name(DType t);
// Whether sums and products may have the dtype: it raises for storage types but complex32.
bool adds_up(std::string_view kernel, DType t);
// "float", "long int", "c10::Half": as other messages of PyTorch's name them.
std::string cxx_type_name(DType t);

// --- sizes ---
DimVector reduced_dim(IntSpan sizes, OptInt dim, bool keepdim);
// The leading sizes with `trailing` ones behind: one element a row.
DimVector row_sizes(IntSpan sizes, int64_t trailing);
bool ends_with(IntSpan sizes, IntSpan tail);
// [-count, ..., -1]
DimVector trailing_dims(int64_t count);
// 0, 2, 3, ...: what batch_norm reduces over.
DimVector all_but_channel(int64_t ndim);
// [1, channels, 1, ...]
DimVector channel_shape(int64_t ndim, int64_t channels);
// softmax's dimension where none is given.
int64_t softmax_dim(int64_t ndim, OptInt dim);
// "2, 3" and "torch.Size([2, 3])"
std::string join(IntSpan sizes);
std::string size_text(IntSpan sizes);
// Positions of an image [n, c, spatial...].
int64_t spatial_numel(IntSpan sizes);

// --- checks ---
// complex and polar take two tensors of one dtype: half, float or double.
bool are_parts_of_complex(DType a, DType b);
// A maximum needs elements in each reduced dimension, unless the result has none either.
bool reduces_something(std::string_view op, IntSpan sizes, IntSpan dims);
bool reduces_all(std::string_view op, int64_t numel);
bool has_extreme(std::string_view op, IntSpan sizes, OptInt dim);
// Warns where var or std divide by N - correction <= 0; always true.
bool has_degrees_of_freedom(std::string_view op, const Tensor& self, OptInts dims,
                            const OptScalar& correction);
bool norm_defined(double ord, IntSpan sizes, OptInts dims);
// Norms are taken of floating or complex elements, in `dtype` of the same kind and no less precise.
bool norm_dtype_fits(std::string_view op, const Tensor& self, OptDType dtype);

}  // namespace taeda::rules
