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
// The dtype that out= may have, as the table says it (`out_dtype`).
enum class OutDtype : uint8_t { kSame, kCastable, kAny };
void check_out_dtype(std::string_view op, OutDtype allowed, DType result, DType out);
struct OutPolicy {
  bool quietly;  // see resize_out
  OutDtype dtype;
};
// Puts `result` into the out= argument: checks device and dtype, resizes, copies.
void write_out(std::string_view op, const Tensor& out, const Tensor& result, OutPolicy policy);

}  // namespace taeda
