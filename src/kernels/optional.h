// Arguments of kernels that may be left out, by the names that the table's types have in C++.
// taeda/tensor.h has the same names for code that knows tensors, which kernels do not.
#pragma once

#include <optional>

#include "kernels/view.h"
#include "taeda/scalar.h"

namespace taeda {

using OptInt = std::optional<int64_t>;
using OptDouble = std::optional<double>;
using OptBool = std::optional<bool>;
using OptScalar = std::optional<Scalar>;
using OptDType = std::optional<DType>;
using OptInts = std::optional<IntSpan>;

}  // namespace taeda
