// Reductions over any dimensions: a group of threads takes in the elements of one result, or of a
// part of it, in steps of the group; then its threads' states are combined.
//
// Where results are few, each is made of parts, whose states a second kernel combines. Nothing is
// atomic, and the parts depend on sizes only: the same bits come out every time. Each element is
// read once.
#pragma once
#include "kernels/cuda/text/group.cuh"
#include "kernels/cuda/text/reduce_args.h"

namespace taeda::device {

// R: a type T to load elements as, a State of whole words, identity(), take(state, x, index,
// parameter), combine(a, b), finish(args, state, offsets).
template <class R>
TD_FN void reduce_kernel(const ReduceArgs& a) {
  using State = typename R::State;
  const Group group{a.threads};
  const uint64_t tasks = a.kept.count * a.splits;
  for (uint64_t task = group.first(); task < tasks; task += group.step()) {
    const uint64_t part = a.splits == 1 ? 0 : task / a.kept.count;
    const Offsets<3> at = offsets(a.kept, task - part * a.kept.count);
    const char* const x = a.x + at[0];
    const uint64_t begin = part * a.split, stop = begin + a.split;
    const uint64_t end = stop < a.reduced.count ? stop : a.reduced.count;
    State state = R::identity();
#pragma unroll 4
    for (uint64_t i = begin + group.rank(); i < end; i += a.threads) {
      const auto value = load<typename R::T>(x + offsets(a.reduced, i)[0], a.x_type);
      R::take(state, value, static_cast<int64_t>(i), a.parameter);
    }
    state = group.reduce(state, R::combine);
    if (group.rank() != 0) continue;
    if (a.partial)
      reinterpret_cast<State*>(a.partial)[task] = state;
    else
      R::finish(a, state, at);
  }
}

template <class R>
TD_FN void join_kernel(const ReduceArgs& a) {
  const Group group{a.threads};
  const auto* const states = reinterpret_cast<const typename R::State*>(a.partial);
  for (uint64_t i = group.first(); i < a.kept.count; i += group.step()) {
    typename R::State state = R::identity();
    for (uint32_t part = group.rank(); part < a.splits; part += a.threads)
      state = R::combine(state, states[part * a.kept.count + i]);
    state = group.reduce(state, R::combine);
    if (group.rank() == 0) R::finish(a, state, offsets(a.kept, i));
  }
}

template <class T>
TD_FN void put(const ReduceArgs& a, const Offsets<3>& at, int k, T value) {
  if (a.out[k]) store(a.out[k] + at[k + 1], a.out_types[k], value);
}

}  // namespace taeda::device
