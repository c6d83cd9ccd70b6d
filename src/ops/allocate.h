// New tensors for operators' results. Uninitialised, no history; AssertionError where the device
// does not exist.
#pragma once

#include <atomic>

#include "taeda/tensor.h"

namespace taeda {

// Row-major. RuntimeError for negative sizes and for sizes whose product overflows.
Tensor empty_tensor(IntSpan sizes, DType dtype, Device device);
// With the given strides (checked not to overflow).
Tensor empty_strided_tensor(IntSpan sizes, IntSpan strides, DType dtype, Device device);
// Dense, with `like`'s order of dimensions in memory where `like` is dense; row-major otherwise.
Tensor empty_like_tensor(const Tensor& like, DType dtype);
// A tensor on `base`'s storage with a layout of its own; the caller guarantees that it stays
// inside. No view tracking.
Tensor alias_tensor(const Tensor& base, IntSpan sizes, IntSpan strides, int64_t offset);

// Whether memory that nobody has written is filled: torch.use_deterministic_algorithms. A setting
// of the process, False at first.
extern std::atomic<bool> fill_uninitialized;
// Fills a tensor while that is so: with NaN, or with the largest number of its dtype.
void fill_unwritten(const Tensor& t);
inline Tensor filled_if_asked(Tensor t) {
  if (fill_uninitialized.load(std::memory_order_relaxed)) [[unlikely]]
    fill_unwritten(t);
  return t;
}

// Gives an out= argument its sizes; as PyTorch, warns when that changes a tensor that has elements,
// unless `quietly`.
void resize_out(std::string_view op, const Tensor& out, IntSpan sizes, bool quietly = false);
// The in-place form of an operator that has no writing form: `result` copied into `self`, if its
// dtype may become self's.
Tensor write_inplace(std::string_view op, const Tensor& self, const Tensor& result);
// The dtypes that out= may have (the table's `out_dtype`), by which PyTorch's operators differ,
// also in the class of the exception where it has another one: a RuntimeError unless this says
// otherwise.
enum class OutDtype : uint8_t {
  kSame,       // the result's
  kScanned,    // the same, refused in other words
  kDrawn,      // any floating one of a floating result; NotImplementedError of integers
  kArgument,   // the same, which it gives where the argument `dtype` is not given
  kAveraged,   // as kArgument; over all elements one that the argument's can be cast to
  kGiven,      // as kArgument, which may be called `out_dtype`; ValueError
  kAny,        // any: the result is converted
  kAnyReal,    // any that is not complex; NotImplementedError
  kCastable,   // one that the result's can be cast to
  kReal,       // as kCastable, but real results do not become complex
  kNumber,     // as kCastable where the last argument is a number or 0-d, else as kSame
  kAnyNumber,  // the same of any argument
  kOfReal,     // as kSame of real arguments, as kCastable of complex ones
  kTruth,      // bool or uint8
  kJoined,     // as kCastable; TypeError
  kSummed,     // as kReal, and any of integers: computed in it, NotImplementedError
  kDeviation,  // as kReal, NotImplementedError of complex; of complex numbers, or where the result
               // is 0-d, as kCastable, but not from half precision to a wider one
};
// What happens to an out= of another shape (the table's `out_shape`). Where nothing is cast to its
// dtype, it is laid out as the result, else row-major.
enum class OutShape : uint8_t {
  kWarned,       // it is resized, with a warning if it has elements
  kQuiet,        // without a warning, as of factories
  kCount,        // one with as many elements is filled in row-major order, others as kQuiet
  kCountWarned,  // ... others as kWarned
  kKept,         // as kWarned, but left alone by a vector without elements, which says nothing
  kOneRow,       // as kWarned; one with gaps becomes a matrix of one row on the way to a vector
  kCopied,       // as kWarned; row-major if it has elements
  kIndex,        // as kWarned; has the size of the last argument, the index, for `overlap`
};
void check_out_dtype(std::string_view op, OutDtype allowed, DType result, DType out);
struct OutPolicy {
  OutDtype dtype;
  OutShape shape;
};
// Puts `result` into the out= argument: checks device and dtype, resizes, copies.
void write_out(std::string_view op, const Tensor& out, const Tensor& result, OutPolicy policy);

}  // namespace taeda
