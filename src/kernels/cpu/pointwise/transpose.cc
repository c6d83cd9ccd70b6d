#include "kernels/cpu/pointwise/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/transpose.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
// Rows 4 k + j and 4 k + j + 1 of each square of four turn by unpacking; then blocks of 128 bits
// change places, as a 4 x 4 matrix of them would. Unrolled, or the arrays would be memory.
HWY_INLINE void turn(uint32_t* y, int64_t n, const char* src, int64_t stride) {
  __m512i a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_si512(src + i * stride);
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; i++) {
    const __m512i even = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88),
                  odd = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd),
                  even2 = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88),
                  odd2 = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
    _mm512_storeu_si512(y + i * n, _mm512_shuffle_i32x4(even, even2, 0x88));
    _mm512_storeu_si512(y + (i + 4) * n, _mm512_shuffle_i32x4(odd, odd2, 0x88));
    _mm512_storeu_si512(y + (i + 8) * n, _mm512_shuffle_i32x4(even, even2, 0xdd));
    _mm512_storeu_si512(y + (i + 12) * n, _mm512_shuffle_i32x4(odd, odd2, 0xdd));
  }
}
#endif

int64_t turn_lines([[maybe_unused]] uint32_t* y, [[maybe_unused]] const char* src,
                   [[maybe_unused]] int64_t stride, [[maybe_unused]] int64_t n) {
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX3
  for (; i + 16 <= n; i += 16) turn(y + i, n, src + i * stride, stride);
  if (i > 0 && i < n) {  // the last sixteen, some of them once more
    turn(y + n - 16, n, src + (n - 16) * stride, stride);
    i = n;
  }
#endif
  return i;
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(turn_lines);
int64_t transpose_lines(uint32_t* y, const char* src, int64_t stride, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(turn_lines)(y, src, stride, n);
}

}  // namespace taeda::cpu
#endif
