// Running sums, products and extremes along one dimension: y_i = x_0 op ... op x_i.
//
// A group goes along its row by as many elements as it has threads: a scan over the warp by
// shuffles, over the block's warps by shared memory, and what came before.
#pragma once
#include "kernels/cuda/text/reducers.cuh"
#include "kernels/cuda/text/rows.cuh"

namespace taeda::device {

template <class S>
TD_FN S shuffle_up(S s, unsigned by) {
  static_assert(sizeof(S) % 8 == 0);
  struct Words {
    uint64_t at[sizeof(S) / 8];
  };
  Words words = std::bit_cast<Words>(s);
#pragma unroll
  for (size_t i = 0; i < sizeof(S) / 8; i++)
    words.at[i] = __shfl_up_sync(0xffffffffu, words.at[i], by);
  return std::bit_cast<S>(words);
}

// Of the states of this thread and those of the group before it; `all` becomes that of all.
template <class S, class Combine>
TD_FN S scan(const Group& group, S s, S& all, Combine combine) {
  if (group.threads == 1) return all = s;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (uint32_t by = 1; by < 32; by *= 2) {
    const S other = shuffle_up(s, by);
    if (lane >= by) s = combine(other, s);
  }
  TD_SHARED(S, last, kMaxWarps);
  if (group.threads == 32) {
    if (lane == 31) last[warp] = s;
    __syncwarp();
    all = last[warp];
    __syncwarp();
    return s;
  }
  __syncthreads();  // what was there may still be read
  if (lane == 31) last[warp] = s;
  __syncthreads();
  all = last[0];
  for (uint32_t w = 1; w < group.threads / 32; w++) {
    if (w == warp) s = combine(all, s);
    all = combine(all, last[w]);
  }
  return s;
}

// R as for reductions; `write(row, i, state)`.
template <class R, class Write>
TD_FN void scan_rows(const RowArgs& args, Write write) {
  for_each_row(args, [&](const Row& row) {
    using State = typename R::State;
    State carry = R::identity();
    for (uint64_t base = 0; base < args.n; base += args.threads) {
      const uint64_t i = base + row.group.rank();
      State s = R::identity(), all;
      if (i < args.n) R::take(s, row.get<typename R::T>(1, i), static_cast<int64_t>(i), 0);
      s = R::combine(carry, scan(row.group, s, all, R::combine));
      carry = R::combine(carry, all);
      if (i < args.n) write(row, i, s);
    }
  });
}

template <class T>
TD_FN void cumsum_kernel(const RowArgs& args) {
  scan_rows<Sum<T>>(args, [](const Row& row, uint64_t i, const auto& s) {
    row.set(i, static_cast<T>(s.total()));
  });
}
template <class T>
TD_FN void cumprod_kernel(const RowArgs& args) {
  scan_rows<Product<T>>(
      args, [](const Row& row, uint64_t i, const auto& s) { row.set(i, static_cast<T>(s.value)); });
}

// Of equal values the last counts; operand 2 gets its index.
template <class T, bool kMax>
struct LastExtreme : Extreme<T, kMax> {
  using State = typename Extreme<T, kMax>::State;
  TD_FN static State combine(const State& a, const State& b) {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    return Extreme<T, kMax>::beats(a.value, b.value) ? a : b;
  }
};
template <class T, bool kMax>
TD_FN void cumextreme_kernel(const RowArgs& args) {
  scan_rows<LastExtreme<T, kMax>>(args, [](const Row& row, uint64_t i, const auto& s) {
    row.set(i, s.value);
    row.set(i, s.index, 2);
  });
}

}  // namespace taeda::device
