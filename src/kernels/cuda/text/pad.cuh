// Padding with a tensor's own elements, by reflection, replication or repetition, and its gradient.
//
//   y[o] = x[s(o)],   gx[i] = sum of gy[o] over the o with s(o) = i,   s in each dimension by
//   itself
//
// The gradient of an element gathers what shows it, in an order of its own: no atomics, and the
// same bits each time. Forward 2 n bytes move; backward each gy is read once.
#pragma once
#include "kernels/cuda/text/move.cuh"
#include "kernels/cuda/text/pad_args.h"

namespace taeda::device {

TD_FN int64_t modulo(int64_t i, int64_t n) {
  const int64_t rest = i % n;
  return rest < 0 ? rest + n : rest;
}

TD_FN int64_t source(const PadDim& d, PadMode mode, int64_t o) {
  const int64_t i = o - d.before, last = d.n - 1;
  if (mode == PadMode::kCircular) return d.cropped + modulo(i - d.cropped, d.kept);
  if (mode == PadMode::kReplicate) return i < 0 ? 0 : i > last ? last : i;
  const int64_t k = i < 0 ? -i : i;
  return k > last ? 2 * last - k : k;
}

template <class S>
TD_FN void pad_kernel(const PadArgs& a) {
  for (uint64_t i = first_index(); i < a.walk.count; i += index_step()) {
    const Offsets<4> at = offsets(a.walk, i);
    int64_t from = at[0];
#pragma unroll
    for (int d = 0; d < 3; d++) from += source(a.dims[d], a.mode, at[d + 1]) * a.dims[d].stride;
    move<S>(a.out + i * sizeof(S), a.x + from);
  }
}

// The indices o = first + k step, k < count, that show index i; of reflections up to three others.
struct Shown {
  int64_t first, step, count;
};
TD_FN Shown shown(const PadDim& d, PadMode mode, int64_t i) {
  int64_t first = i + d.before, last = first;
  if (mode == PadMode::kReflect) return {first, 0, 3};
  if (mode == PadMode::kCircular) {
    if (i < d.cropped || i >= d.cropped + d.kept) return {0, 0, 0};
    first = modulo(first, d.kept);
    return {first, d.kept, first < d.padded ? (d.padded - 1 - first) / d.kept + 1 : 0};
  }
  if (i == 0 || first < 0) first = 0;
  if (i == d.n - 1 || last >= d.padded) last = d.padded - 1;
  return {first, 1, last - first + 1};
}
// The k-th of them; -1 for none.
TD_FN int64_t shown_at(const PadDim& d, const Shown& s, int64_t k, int64_t i) {
  int64_t o = s.first + k * s.step;
  if (s.step == 0) {
    if ((k == 1 && i == 0) || (k == 2 && i == d.n - 1)) return -1;  // those are itself
    if (k == 1) o = d.before - i;
    if (k == 2) o = d.before + 2 * (d.n - 1) - i;
  }
  return o >= 0 && o < d.padded ? o : -1;
}

template <class T>
TD_FN void pad_backward_kernel(const PadArgs& a) {
  const int64_t itemsize = a.dims[2].stride;
  for (uint64_t i = first_index(); i < a.walk.count; i += index_step()) {
    const Offsets<4> at = offsets(a.walk, i);
    const Shown by[3] = {shown(a.dims[0], a.mode, at[1]), shown(a.dims[1], a.mode, at[2]),
                         shown(a.dims[2], a.mode, at[3])};
    T sum = T(0);
    for (int64_t p = 0; p < by[0].count; p++) {
      const int64_t o0 = shown_at(a.dims[0], by[0], p, at[1]);
      for (int64_t q = 0; o0 >= 0 && q < by[1].count; q++) {
        const int64_t o1 = shown_at(a.dims[1], by[1], q, at[2]);
        for (int64_t r = 0; o1 >= 0 && r < by[2].count; r++) {
          const int64_t o2 = shown_at(a.dims[2], by[2], r, at[3]);
          const int64_t from =
              at[0] + o0 * a.dims[0].stride + o1 * a.dims[1].stride + o2 * itemsize;
          if (o2 >= 0) sum = sum + load<T>(a.x + from, a.type);
        }
      }
    }
    store(a.out + static_cast<int64_t>(i) * itemsize, a.type, sum);
  }
}

}  // namespace taeda::device
