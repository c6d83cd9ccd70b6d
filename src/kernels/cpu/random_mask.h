// Coin flips on vectors: what bernoulli and dropout do with blocks of random words, two a flip.
#pragma once

#include <cmath>
#include <cstdint>

namespace taeda::cpu {

// uniform < p, uniform = k * 2^-53, is k < flip_threshold(p): the product below is exact.
inline uint64_t flip_threshold(double p) { return static_cast<uint64_t>(std::ceil(p * 0x1p53)); }

// mask[i] = 1 where draw i is below the threshold, else 0. `words` holds 2n.
void flip_coins(const uint32_t* words, uint64_t threshold, uint8_t* mask, int64_t n);
// The same, and out = x * (mask ? scale : 0).
void flip_coins_and_scale(const uint32_t* words, uint64_t threshold, const float* x, float scale,
                          float* out, uint8_t* mask, int64_t n);
// out = x * (mask ? scale : 0), as a product: NaN and -0 come out as they do from x * noise.
void scale_kept(const float* x, const uint8_t* mask, float scale, float* out, int64_t n);

}  // namespace taeda::cpu
