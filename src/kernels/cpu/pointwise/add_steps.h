// Evenly spaced numbers.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// out[i] = from + (first + i direction) step for i < n, in double; one rounding for both if fused.
// Indices are below 2^53.
void add_steps(float* out, int64_t n, double from, double step, int64_t first, int64_t direction,
               bool is_fused);
void add_steps(double* out, int64_t n, double from, double step, int64_t first, int64_t direction,
               bool is_fused);

}  // namespace taeda::cpu
