// The conversions that have vector code of their own.
#pragma once

#include "kernels/cpu/pointwise/loop.h"

namespace taeda::cpu {

// Null where there is none.
Conversion::Function convert_simd(DType to, DType from);

}  // namespace taeda::cpu
