// What random words become, on vectors. All `words` are as Mt19937::draw gives them, before
// tempering: the loops temper those that matter.
#pragma once

#include <cmath>
#include <cstdint>

namespace taeda::cpu {

// uniform < p, uniform = k * 2^-53, is k < flip_threshold(p): the product below is exact.
inline uint64_t flip_threshold(double p) { return static_cast<uint64_t>(std::ceil(p * 0x1p53)); }

// mask[i] = 1 where draw i, of two words, is below the threshold, else 0.
void flip_coins(const uint32_t* words, uint64_t threshold, uint8_t* mask, int64_t n);
// The same, and out = x * (mask ? scale : 0). `past_cache`: see kernels/cpu/simd/stream.h; whoever
// asks for it fences.
void flip_coins_and_scale(const uint32_t* words, uint64_t threshold, const float* x, float scale,
                          float* out, uint8_t* mask, int64_t n, bool past_cache);
// out = x * (mask ? scale : 0), as a product: NaN and -0 come out as they do from x * noise.
void scale_kept(const float* x, const uint8_t* mask, float scale, float* out, int64_t n,
                bool past_cache);
// out[i] = 1 where draw i, of one word, is below p[i], else 0. The two may be the same.
void flip_coins(const uint32_t* words, const float* p, float* out, int64_t n);
// Whether all of p are in [0, 1].
bool are_chances(const float* p, int64_t n);

// out[i] = fma(Mt19937::unit(word i), range, low).
void uniform_floats(const uint32_t* words, float low, float range, float* out, int64_t n);
// out[i] = base + word i % range, 0 < range <= 2^31.
void small_integers(const uint32_t* words, uint32_t range, int64_t base, int64_t* out, int64_t n);

}  // namespace taeda::cpu
