// nonzero, masked_select and masked_scatter_: elements where flags are true, in row-major order.
//
//   out[k] = x[i]   for the k-th i with flag[i] != 0
//
// In three launches: each block counts the flags of a chunk; one block turns counts into where each
// chunk begins; each block then ranks its flags by a scan over tiles. Flags are read twice, what is
// true is read and written once. No block waits for another one.
#pragma once
#include "kernels/cuda/text/compact_args.h"
#include "kernels/cuda/text/move.cuh"
#include "kernels/cuda/text/scan.cuh"

namespace taeda::device {

inline constexpr uint32_t kTogether = kTile / 128;  // neighbours of a tile that a thread has

TD_FN bool is_true(const char* p, ElementType type) {
  if (type == ElementType::kComplex64)
    return load_as<float, bool>(p) || load_as<float, bool>(p + 4);
  if (type == ElementType::kComplex128)
    return load_as<double, bool>(p) || load_as<double, bool>(p + 8);
  return load<bool>(p, type);
}

TD_FN int64_t add(const int64_t& a, const int64_t& b) { return a + b; }

TD_FN void compact_count_kernel(const CompactArgs& a) {
  const Group block{blockDim.x};
  for (uint64_t chunk = blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
    const uint64_t begin = chunk * a.chunk, stop = begin + a.chunk;
    const uint64_t end = stop < a.walk.count ? stop : a.walk.count;
    int64_t count = 0;
    for (uint64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
      count += is_true(a.flags + offsets(a.walk, i)[0], a.type);
    count = block.reduce(count, add);
    if (threadIdx.x == 0) a.starts[chunk] = count;
  }
}

// One block.
TD_FN void compact_starts_kernel(const CompactArgs& a) {
  if (blockIdx.x > 0) return;
  const Group block{blockDim.x};
  int64_t before = 0;
  for (uint64_t base = 0; base < a.chunks; base += blockDim.x) {
    const uint64_t i = base + threadIdx.x;
    const int64_t count = i < a.chunks ? a.starts[i] : 0;
    int64_t all = 0;
    const int64_t upto = scan(block, count, all, add);
    if (i < a.chunks) a.starts[i] = before + upto - count;
    before += all;
  }
  if (threadIdx.x == 0) a.starts[a.chunks] = before;
}

// put(k, i) for the k-th true flag, which is that of element i.
template <class Put>
TD_FN void for_each_true(const CompactArgs& a, Put put) {
  const Group block{blockDim.x};
  for (uint64_t chunk = blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
    int64_t before = a.starts[chunk];
    for (uint64_t base = chunk * a.chunk; base < (chunk + 1) * a.chunk; base += kTile) {
      const uint64_t first = base + threadIdx.x * kTogether;
      uint32_t flags = 0;
      int64_t count = 0;
      for (uint32_t k = 0; k < kTogether && first + k < a.walk.count; k++) {
        const bool is = is_true(a.flags + offsets(a.walk, first + k)[0], a.type);
        flags |= static_cast<uint32_t>(is) << k;
        count += is;
      }
      int64_t all = 0;
      int64_t rank = before + scan(block, count, all, add) - count;
      for (uint32_t k = 0; k < kTogether; k++)
        if (flags >> k & 1) put(static_cast<uint64_t>(rank++), first + k);
      before += all;
    }
  }
}

// Of an element its indices in each dimension.
TD_FN void compact_nonzero_kernel(const CompactArgs& a) {
  for_each_true(a, [&](uint64_t rank, uint64_t i) {
    uint64_t rest = i;
    char* const to = a.out + static_cast<int64_t>(rank) * a.stride;
    for (int d = a.ndim - 1; d >= 0; d--) {
      const auto size = static_cast<uint64_t>(a.sizes[d]), next = rest / size;
      *reinterpret_cast<int64_t*>(to + d * a.dim_stride) = static_cast<int64_t>(rest - next * size);
      rest = next;
    }
  });
}
template <class S>
TD_FN void compact_select_kernel(const CompactArgs& a) {
  for_each_true(a, [&](uint64_t rank, uint64_t i) {
    move<S>(a.out + rank * sizeof(S), a.x + offsets(a.walk, i)[1]);
  });
}
// Where the source is too short it is reported, and the rest is left alone.
template <class S>
TD_FN void compact_scatter_kernel(const CompactArgs& a) {
  for_each_true(a, [&](uint64_t rank, uint64_t i) {
    if (rank < a.available)
      move<S>(a.x + offsets(a.walk, i)[1], a.out + offsets(a.source, rank)[0]);
    else
      report(a.message, static_cast<int64_t>(rank), static_cast<int64_t>(a.available));
  });
}

}  // namespace taeda::device
