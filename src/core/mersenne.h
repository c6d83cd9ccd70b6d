// The Mersenne twister on vectors: what Mt19937 draws its blocks with.
//
// M. Matsumoto and T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform
// pseudo-random number generator", ACM TOMACS 8 (1998). Word i of the stream, before tempering, is
//
//   x[i] = x[i - 227] ^ (mixed >> 1) ^ (mixed & 1 ? 0x9908b0df : 0),
//   mixed = the highest bit of x[i - 624] and the lower 31 of x[i - 623].
//
// Pure functions on memory, for any thread.
#pragma once

#include <cstdint>

namespace taeda::mersenne {

// The state words[0 .. 624) is continued by `blocks` times 624 words.
void twist(uint32_t* words, int64_t blocks);
// out[i] = Mt19937::temper(in[i]).
void temper(const uint32_t* in, uint32_t* out, int64_t n);

}  // namespace taeda::mersenne
