// float16 and bfloat16 without CUDA's headers: as they are stored, converted to and from float.
#pragma once
#include "kernels/cuda/text/kernel.cuh"

namespace taeda::device {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

#if defined(__CUDA_ARCH__)
TD_FN float widen(Half h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
  return f;
}
TD_FN void narrow(float f, Half& h) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f)); }
#else
inline float widen(Half h) { return std::bit_cast<_Float16>(h.bits); }
inline void narrow(float f, Half& h) { h.bits = std::bit_cast<uint16_t>(static_cast<_Float16>(f)); }
#endif
TD_FN float widen(BFloat16 b) { return std::bit_cast<float>(static_cast<uint32_t>(b.bits) << 16); }
// To the nearest, ties to even; sm_75 has no instruction for it.
TD_FN void narrow(float f, BFloat16& b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(f));
#else
  const uint32_t u = std::bit_cast<uint32_t>(f);
  const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  b.bits = static_cast<uint16_t>(f != f ? (u >> 16 | 0x40) : rounded);
#endif
}

template <class S>
constexpr bool kIsStoredFloat = std::is_same_v<S, Half> || std::is_same_v<S, BFloat16>;

}  // namespace taeda::device
