// Division of dense arrays of integers, by vectors: what the functors of pointwise/division.h stand
// for where the elements are integers.
#pragma once

#include <cstdint>

#include "taeda/dtype.h"

namespace taeda::cpu {

// The quotient rounded towards zero or down, and the remainders that belong to each.
enum class Division { kTrunc, kFloor, kFmod, kRemainder };

// out[i] = x[i] divided by y[i]; RuntimeError where a divisor is 0, and the smallest integer
// divided by -1 wraps around. Bit k of `repeated` says that one element, kRepeatBytes of it, stands
// for all of input k (see DenseFn).
void divide_integers(Division kind, DType dtype, void* out, const void* x, const void* y, int64_t n,
                     uint32_t repeated);

}  // namespace taeda::cpu
