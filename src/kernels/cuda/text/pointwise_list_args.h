// The arguments of kernels for several calls (pointwise_list.cuh), which launch_list.cc fills.
#pragma once
#include "kernels/cuda/text/pointwise_args.h"

namespace taeda::device {

// Arrays of one call: operands of n elements in the result's type. Bit i of `given` says that in[i]
// is a number of the compute type, in the bytes of the pointer (of complex128 the real part, the
// other being 0), bit i of `repeated` that it is one element for all, a float32 where bit i of
// `single` is set.
template <int N>
struct ListCall {
  void* out;
  const void* in[N];
  uint32_t n;
  uint32_t first;  // number of its first chunk
  uint8_t given, repeated, single;
  bool aligned;  // every array's address is a multiple of 16
};

inline constexpr int kMaxListInputs = 3;
inline constexpr uint32_t kListChunk = 4096;  // elements that a block works on at a time
// Calls in one launch.
template <int N>
constexpr int kListCalls = (4096 - 64 - 16) / sizeof(ListCall<N>);

template <int N>
struct ListArgs {
  ListCall<N> calls[kListCalls<N>];
  uint32_t count, chunks;
};

}  // namespace taeda::device
