// Rows that are reduced into one another: what scatter_reduce does where one index stands for a
// whole row.
#pragma once

#include <cstdint>

#include "taeda/dtype.h"

namespace taeda::cpu {

enum class Reduce { kSet, kSum, kProd, kMin, kMax };

// to[i] = to[i] + from[i], or their product, minimum or maximum; NaN counts as smallest and
// largest.
using CombineRows = void (*)(void* to, const void* from, int64_t n);
// By vectors; null where there is none: for other types than float and double, and kSet.
CombineRows combine_rows(DType dtype, Reduce how);

}  // namespace taeda::cpu
