// The conversions that have vector code of their own.
#pragma once

#include "kernels/cpu/pointwise/loop.h"

namespace taeda::cpu {

// Null where there is none.
Conversion::Function convert_simd(DType to, DType from);
// The same of those that the compiler vectorizes for each instruction set.
Conversion::Function convert_loop(DType to, DType from);

}  // namespace taeda::cpu
