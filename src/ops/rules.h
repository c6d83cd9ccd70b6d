// Shape and dtype rules that table entries call as rules.NAME(...), and type promotion over
// tensors.
#pragma once

#include "taeda/tensor.h"

namespace taeda::rules {

// torch.result_type over any number of tensors: dimensioned tensors outrank 0-d ones, which outrank
// numbers, within a category (bool < integer < floating < complex).
class Promotion {
 public:
  void add(const Tensor& t);
  DType result() const;

 private:
  DType dims_ = DType::kBool, zero_ = DType::kBool, number_ = DType::kBool;
  bool has_dims_ = false, has_zero_ = false, has_number_ = false;
};
DType result_type(const Tensor& a, const Tensor& b);

// Whether `t` has a batch of vmap, which nobody can look at.
bool is_batched(const Tensor& t);
// Whether `t` stands for a Python number.
bool is_number(const Tensor& t);
double real_number(const Tensor& t);  // the number that it stands for, which is real
// Whether a TorchDispatchMode sees what is called: formulas then take PyTorch's steps.
bool is_seen();
bool is_negative_integer(const Tensor& t);  // a number
// Whether a call may ignore that `t` requires grad: it does not, or nothing is recorded.
bool takes_no_gradient(const Tensor& t);

// Whether the dtype is a storage type, whose integers have only some of the operators of integers.
bool is_stored(const Tensor& t);
// Whether abs is of elements of this kind: the eight-bit floats have a sign bit.
bool has_absolute(const Tensor& t);
// Whether there are matrix products of such elements: of numbers, and of eight-bit floats.
bool has_products(const Tensor& t);

// Warns, once a process for each `what`, that it is deprecated and what to use; always true.
bool deprecated(std::string_view what, std::string_view instead);

// Sizes of a reduction of `sizes` over `dims` (none given: over all).
DimVector reduced(IntSpan sizes, OptInts dims, bool keepdim);

// Whether `value` can be an element beside those of `dtype`: false for an integer out of the range
// of an integer dtype. A number of a higher category changes the dtype instead.
bool fits(const OptScalar& value, DType dtype);
bool number_fits(const Tensor& value, DType dtype);  // the same for a number among the tensors
// The largest finite number of a floating dtype.
double largest(DType dtype);
// "uint8_t", "int64_t": how messages about overflow name an integer dtype.
std::string c_name(DType dtype);

}  // namespace taeda::rules
