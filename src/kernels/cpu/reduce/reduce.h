// Reductions: one engine for any set of dimensions, any strides and any element type.
//
// What is computed is a Reducer: how a state starts, how it takes in dense values, how two states
// combine. The engine walks the tensor along its smallest strides, brings blocks that are strided
// or of another type into L1 as dense `compute` values, and splits long reductions into chunks
// whose number depends on sizes only: the same bits come out for any number of threads.
#pragma once

#include <cstdint>

#include "kernels/launch.h"
#include "kernels/optional.h"
#include "kernels/view.h"

namespace taeda::cpu {

struct Reducer {
  DType compute;       // the element type that row and columns read
  int64_t state_size;  // bytes of one state; at most kMaxStateSize
  void (*init)(void* states, int64_t n);
  // The state takes in x[0..n). They are elements index, index + 1, ... of the reduced range.
  void (*row)(void* state, const void* x, int64_t n, int64_t index);
  // states[j] takes in x[i * stride + j] for i < rows, elements index + i of the reduced range; j <
  // n.
  void (*columns)(void* states, const void* x, int64_t n, int64_t rows, int64_t stride,
                  int64_t index);
  // states[j] takes in others[j], which saw later elements.
  void (*combine)(void* states, const void* others, int64_t n);
  // Elements must arrive in their logical order (arg reductions); at most one reduced dimension, or
  // a contiguous tensor.
  bool ordered = false;
  const void* params = nullptr;
};
inline constexpr int64_t kMaxStateSize = 32;
inline constexpr int64_t kReduceBlock = 2048;  // values handed to `row` at once, at most
inline constexpr int64_t kReduceTile = 256;    // states handed to `columns` at once, at most

// Where results go: `finalize` writes dense values of `type`, the engine stores them to `view`.
struct ReduceResult {
  const View* view;
  DType type;
};
// Turns n states that took in `count` elements each into results: outs[k] is a dense array of
// results[k].type, null beyond the results asked for.
using FinalizeFn = void (*)(void* const* outs, const void* states, int64_t n, int64_t count,
                            const void* params);

// Reduces x over `dims` (none given: over all). The results have x's sizes without the reduced
// dimensions, or with 1 in their place.
void reduce(const Reducer& reducer, const View& x, IntSpan dims, Span<const ReduceResult> results,
            FinalizeFn finalize, const void* params = nullptr);

// The mean and the variance (divided by N) of x over `dims`.
void mean_and_variance(const View& mean, const View& variance, const View& x, IntSpan dims);

// The sum of what is not NaN. `self` is floating where `out` is.
void nansum(const View& out, const View& self, OptInts dim, bool keepdim, OptDType dtype);

}  // namespace taeda::cpu

namespace taeda {
TD_KERNEL(nansum);
}  // namespace taeda
