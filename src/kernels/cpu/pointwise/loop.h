// The loop engine: runs dense inner loops over operands of any strides and dtypes.
//
// A pointwise kernel is a DenseFn over contiguous arrays of one compute dtype. pointwise_loop()
// merges and reorders dimensions so that long runs appear, calls the DenseFn directly where every
// operand is dense, and otherwise moves blocks that fit the L1 cache through buffers: gathering
// strides, repeating broadcast values, converting dtypes (half and bfloat16 compute in float).
// Large arrays are split over threads at boundaries that depend on sizes only.
#pragma once

#include "kernels/view.h"
#include "taeda/scalar.h"

namespace taeda {

// `repeated` has a bit for each input of which one element stands for all n: its memory then holds
// kRepeatBytes of copies of that element.
using DenseFn = void (*)(void* out, const void* const* in, int64_t n, const void* params,
                         uint32_t repeated);
inline constexpr int64_t kRepeatBytes = 64;  // the longest vector

// A pointwise functor's inner loops by compute dtype; null where the functor does not support it.
struct DenseTable {
  DenseFn fn[kNumArithmeticDTypes];
  DenseFn operator[](DType t) const { return fn[static_cast<int>(t)]; }
};

inline constexpr size_t kMaxLoopInputs = 8;

// out = fn(in...) for every element. `fn` reads `compute` and writes `fn_out`; operands of other
// dtypes are converted. Inputs have out's sizes (broadcast dimensions with stride 0). An input may
// be the same memory as `out` in the same layout; other overlap is the caller's to prevent. At most
// kMaxLoopInputs inputs.
void pointwise_loop(DenseFn fn, DType compute, DType fn_out, const View& out, Span<const View> in,
                    const void* params);

namespace cpu {

// dst[...] = src[...] with dtype conversion; src has dst's sizes (stride 0 broadcasts). The memory
// must not overlap unless it is the same in the same layout.
void copy(const View& dst, const View& src);
// dst[...] = value, converted to dst's dtype as Scalar::to does (RuntimeError where it does not
// fit).
void fill(const View& dst, const Scalar& value);

// n elements between dense arrays of different dtypes. Floats become integers by truncation;
// complex numbers lose their imaginary part; anything but zero is true. A storage type goes through
// the type that it is calculated in, block by block.
class Conversion {
 public:
  using Function = void (*)(void* dst, const void* src, int64_t n);

  Conversion() = default;  // none is needed
  Conversion(DType to, DType from);
  explicit operator bool() const { return count_ > 0; }
  void operator()(void* dst, const void* src, int64_t n) const {
    if (count_ == 1) [[likely]]
      return steps_[0](dst, src, n);
    run_in_blocks(dst, src, n);
  }

 private:
  void add(Function step, int64_t bytes) {
    steps_[count_] = step;
    bytes_[count_++] = bytes;
  }
  void run_in_blocks(void* dst, const void* src, int64_t n) const;

  Function steps_[3];
  int64_t bytes_[3];  // of an element after the step
  int64_t source_bytes_ = 0;
  int count_ = 0;
};

}  // namespace cpu
}  // namespace taeda
