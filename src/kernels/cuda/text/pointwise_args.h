// The arguments of pointwise kernels (pointwise.cuh), which launchers fill (../pointwise.cc).
#pragma once
#include <cstdint>

#include "kernels/cuda/text/element_type.h"

namespace taeda::device {

inline constexpr int kMaxInputs = 4;
inline constexpr int kMaxDims = 8;
inline constexpr int64_t kMaxElements = int64_t{1} << 30;  // of one launch: indices are uint32_t

// Inputs that are one number for all elements, in the compute type: bit i of `given` says that
// input i is number[i], bit i of `repeated` that it is the one element at in[i].
template <int N>
struct Numbers {
  alignas(16) unsigned char number[N][16];
  uint32_t given;
  uint32_t repeated;
};

// Elements of an array that a thread reads and writes at a time: 16 bytes, of half precision too.
constexpr int pack_size(int64_t itemsize) {
  return itemsize == 16 ? 1 : itemsize >= 4 ? static_cast<int>(16 / itemsize) : 8;
}

// Every operand is an array of n elements.
template <int N>
struct DenseArgs {
  Numbers<N> numbers;
  void* out;
  const void* in[N];
  uint32_t n;
  uint32_t aligned;  // every address is a multiple of 16
};

// Division of numbers below 2^31 by a constant, by a product [Granlund and Montgomery 1994].
struct Divisor {
  uint32_t value, multiplier, shift;
};
inline Divisor divisor(uint32_t value) {
  uint32_t shift = 0;
  while ((uint64_t{1} << shift) < value) shift++;
  const uint64_t excess = (uint64_t{1} << shift) - value;
  return {value, static_cast<uint32_t>((excess << 32) / value + 1), shift};
}

// Operands of any strides and dtypes; 0 is the result. Dimension 0 is the innermost.
template <int N>
struct StridedArgs {
  Numbers<N> numbers;
  char* data[N + 1];
  int32_t strides[kMaxDims][N + 1];  // in bytes
  Divisor sizes[kMaxDims];
  ElementType types[N + 1];
  uint8_t ndim;
  uint32_t n;
};

// What a kernel gets: the loop, and the functor behind it.
template <class Loop, class F>
struct PointwiseArgs {
  Loop loop;
  alignas(16) F functor;
};

}  // namespace taeda::device
