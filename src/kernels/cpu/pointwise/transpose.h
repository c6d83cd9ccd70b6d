// The heart of moving elements of four bytes across memory order: squares that turn in registers.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// The tile of 16 rows of gather_tile() (one cache line of the source for each i): all n columns
// where the machine has vectors of 16 and they are 16 or more, none elsewhere; returns how many.
int64_t transpose_lines(uint32_t* y, const char* src, int64_t stride, int64_t n);

}  // namespace taeda::cpu
