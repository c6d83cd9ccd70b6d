// Kernels that only move elements: one for each size of an element, not for each dtype.
//
//   TD_BY_SIZE(inside, InsideArgs, inside_kernel)    inside_u8_any, ..., inside_c128_any
#pragma once
#include "kernels/cuda/text/kernel.cuh"
// kernel.cuh first: what it defines is for the others
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

struct alignas(16) Bytes16 {
  uint64_t low, high;
};

template <class S>
TD_FN void move(char* to, const void* from) {
  *reinterpret_cast<S*>(to) = *static_cast<const S*>(from);
}

}  // namespace taeda::device

#define TD_BY_SIZE(name, Args, kernel)              \
  TD_GLOBAL(name##_u8_any, Args, kernel<uint8_t>)   \
  TD_GLOBAL(name##_i16_any, Args, kernel<uint16_t>) \
  TD_GLOBAL(name##_i32_any, Args, kernel<uint32_t>) \
  TD_GLOBAL(name##_i64_any, Args, kernel<uint64_t>) \
  TD_GLOBAL(name##_c128_any, Args, kernel<Bytes16>)
