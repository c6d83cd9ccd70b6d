// Shape rules of ops/linalg.yaml.
#pragma once

#include "taeda/tensor.h"

namespace taeda::rules {

// Whether `from` broadcasts to exactly `to`.
bool expands_to(IntSpan from, IntSpan to);
// The product of all values, 1 for none.
int64_t product(IntSpan values);
// Whether all values are zero.
bool all_zero(IntSpan values);
// The complex conjugate; real numbers stay as they are.
Scalar conj(const Scalar& value);
// Whether addr's factor `name` suits results of `dtype`; RuntimeError where not.
bool is_factor(const Scalar& factor, DType dtype, std::string_view name);

}  // namespace taeda::rules
