// Place: from the number of an element to its plane and its indices there.
#pragma once
#include "kernels/cuda/text/place_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

struct Place {
  int64_t plane;
  int32_t at[3];
};
TD_FN Place place_of(const Planes& a, uint64_t i) {
  Place p;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    const Divisor size = a.sizes[2 - d];
    const uint64_t rest = a.wide ? i / size.value : divide(static_cast<uint32_t>(i), size);
    p.at[d] = static_cast<int32_t>(i - rest * size.value);
    i = rest;
  }
  p.plane = static_cast<int64_t>(i);
  return p;
}

// body(i, place) for this thread's elements.
template <class Body>
TD_FN void for_each_place(const Planes& a, Body body) {
  for (uint64_t i = first_index(); i < a.count; i += index_step()) body(i, place_of(a, i));
}

}  // namespace taeda::device
