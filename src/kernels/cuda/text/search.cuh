// searchsorted and isin, by a binary search for each value; histc and bincount, by counting; the
// bins of histogram, by a division.
//
//   out_i = how many of the sorted elements come before v_i (or are not behind it)
//   bin_i = the k with edge_k <= x_i < edge_(k + 1), for edges of equal distances
//   count[floor((x_i - low) bins / (high - low))] += 1
//
// NaN comes behind every number. Each value is read once, the sorted elements log2(m) times a
// value, from the cache where they fit. Counts are integers: the order of the additions is nothing
// to their sum.
#pragma once
#include "kernels/cuda/text/search_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

template <class T>
TD_FN bool is_before(T x, T y) {
  return x < y || (y != y && x == x);
}

template <class T>
TD_FN void search_kernel(const SearchArgs& a) {
  for (uint64_t i = first_index(); i < a.count; i += index_step()) {
    const T v = a.values ? load<T>(a.values + static_cast<int64_t>(i) * a.itemsize, a.type)
                         : static_cast<T>(i);
    const char* const row = a.sorted + static_cast<int64_t>(i / a.n) * a.row;
    uint64_t begin = 0, end = a.m;
    while (begin < end) {
      const uint64_t middle = begin + (end - begin) / 2;
      const T x = load<T>(row + static_cast<int64_t>(middle) * a.itemsize, a.type);
      if (a.right ? !is_before(v, x) : is_before(x, v))
        begin = middle + 1;
      else
        end = middle;
    }
    if (a.found) {
      const bool equal =
          begin < a.m && load<T>(row + static_cast<int64_t>(begin) * a.itemsize, a.type) == v;
      reinterpret_cast<bool*>(a.out)[i] = equal != a.invert;
    } else {
      reinterpret_cast<int64_t*>(a.out)[i] = static_cast<int64_t>(begin);
    }
  }
}

// The rounding of the division may give the bin beside.
template <class T>
TD_FN void histogram_bins_kernel(const BinsArgs& a) {
  const T* const edge = reinterpret_cast<const T*>(a.edges);
  const int64_t last = a.m - 1;
  const T low = edge[0], scale = static_cast<T>(a.m) / (edge[a.m] - low);
  for (uint64_t i = first_index(); i < a.n; i += index_step()) {
    const T x = reinterpret_cast<const T*>(a.x)[i], at = (x - low) * scale;
    int64_t bin = at > 0 ? (at < static_cast<T>(last) ? static_cast<int64_t>(at) : last) : 0;
    if (x < edge[bin] && bin > 0)
      bin--;
    else if (x >= edge[bin + 1] && bin < last)
      bin++;
    a.out[i] = bin;
  }
}

// A block counts in shared memory where bins fit, and adds once to those that it has seen.
template <class T>
TD_FN void histogram_kernel(const HistogramArgs& a) {
  TD_SHARED(uint32_t, counts, kSharedBins);
  for (int64_t i = threadIdx.x; a.shared && i < a.bins; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  auto* const all = reinterpret_cast<unsigned long long*>(a.counts);
  const T low = static_cast<T>(a.low), high = static_cast<T>(a.high);
  for (uint64_t i = first_index(); i < a.walk.count; i += index_step()) {
    const T x = load<T>(a.x + offsets(a.walk, i)[0], a.type);
    if (!(x >= low && x <= high)) continue;
    const T at = (x - low) * static_cast<T>(a.bins) / (high - low);
    int64_t bin = at > 0 ? static_cast<int64_t>(at) : 0;
    if (bin >= a.bins) bin = a.bins - 1;
    if (a.shared)
      atomicAdd(counts + bin, 1u);
    else
      atomicAdd(all + bin, 1ull);
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; a.shared && i < a.bins; i += blockDim.x)
    if (counts[i] != 0) atomicAdd(all + i, static_cast<unsigned long long>(counts[i]));
}

}  // namespace taeda::device
