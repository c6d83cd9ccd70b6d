// gather, scatter, index_select, index_add, embedding, ...: elements addressed along one dimension.
//
//   gather:  other[line][i] = self[line][index[line][i]]
//   scatter: self[line][index[line][i]] op= other[line][i]
//
// Lines never share an element that is written, so where a thread has whole lines results are those
// of the CPU: the last of several writes wins, and sums are the same in every run. Where lines are
// few, several threads share one: writes race, and additions are atomic; what is neither to be so,
// or cannot be, goes by sorted indices (runs.cuh). Each index and each element of `other` is read,
// or written, once. An index out of bounds is reported, and skipped.
#pragma once
#include "kernels/cuda/text/combine.cuh"
#include "kernels/cuda/text/index_args.h"
#include "kernels/cuda/text/move.cuh"

namespace taeda::device {

// body(address in self, address in other) for each element of this thread.
template <class Body>
TD_FN void for_each_indexed(const IndexArgs& a, Body body) {
  const uint64_t tasks = a.lines.count * a.chunks;
  for (uint64_t task = first_index(); task < tasks; task += index_step()) {
    const uint64_t line = a.along ? task / a.chunks : task % a.lines.count;
    const uint64_t chunk = a.along ? task % a.chunks : task / a.lines.count;
    const Offsets<3> at = offsets(a.lines, line);
    const uint64_t begin = chunk * a.chunk, end = begin + a.chunk < a.n ? begin + a.chunk : a.n;
    for (uint64_t i = begin; i < end; i++) {
      const char* const p = a.index + at[2] + static_cast<int64_t>(i) * a.index_stride;
      const int64_t given = a.index_type == ElementType::kInt64
                                ? *reinterpret_cast<const int64_t*>(p)
                                : *reinterpret_cast<const int32_t*>(p);
      const int64_t k = a.wrap && given < 0 ? given + a.size : given;
      char* const other = a.other + at[1] + static_cast<int64_t>(i) * a.other_stride;
      if (k < 0 || k >= a.size)
        report(a.message, given, a.size);
      else if (k != a.skipped)
        body(a.self + at[0] + k * a.stride, other);
    }
  }
}

template <class S>
TD_FN void gather_kernel(const IndexArgs& a) {
  for_each_indexed(a, [](const char* self, char* other) {
    *reinterpret_cast<S*>(other) = *reinterpret_cast<const S*>(self);
  });
}
template <class S>
TD_FN void scatter_kernel(const IndexArgs& a) {
  for_each_indexed(a, [&](char* self, const char* other) {
    const void* const from = a.has_number ? static_cast<const void*>(a.number) : other;
    *reinterpret_cast<S*>(self) = *static_cast<const S*>(from);
  });
}

// --- combined with what is there ---

TD_FN void add_atomically(char* p, ElementType type, auto x) {
  if constexpr (std::is_same_v<decltype(x), int64_t>)
    if (type == ElementType::kInt32)
      return (void)atomicAdd(reinterpret_cast<uint32_t*>(p), static_cast<uint32_t>(x));
  add_atomically(reinterpret_cast<decltype(x)*>(p), x);
}

// T computes; atomic additions are to elements of type T, or of int32.
template <class T>
TD_FN void combine_kernel(const IndexArgs& a) {
  for_each_indexed(a, [&](char* self, const char* other) {
    const char* const from = a.has_number ? reinterpret_cast<const char*>(a.number) : other;
    const T x = load<T>(from, a.type);
    if (a.atomic)
      add_atomically(self, a.type, x);
    else
      store(self, a.type, combined(a.combine, load<T>(self, a.type), x));
  });
}

// Reports what is out of bounds, for operators made of others.
TD_FN void check_bounds_kernel(const BoundsArgs& a) {
  for (uint64_t i = first_index(); i < a.walk.count; i += index_step()) {
    const auto k = load<int64_t>(a.index + offsets(a.walk, i)[0], a.type);
    if ((k >= 0 && k < a.size) || (a.has_except && k == a.except)) continue;
    report(k < 0 ? a.below : a.message, k, a.size);
  }
}

}  // namespace taeda::device
