// The layouts of tensors: what strides.h says of sizes and strides, and whether memory is shared.
#pragma once

#include "core/strides.h"
#include "taeda/tensor.h"

namespace taeda {

// How two tensors' memory relates: kFull is the same elements in the same order (in-place use is
// safe).
enum class MemoryOverlap : uint8_t { kNo, kFull, kPartial, kUnknown };
MemoryOverlap memory_overlap(const Tensor& a, const Tensor& b);

// RuntimeError when a tensor about to be written has elements that share memory (an expanded
// tensor). Meta tensors have no memory to share.
void check_no_internal_overlap(const Tensor& written);
// RuntimeError when `written` is known to overlap `read` other than fully. What is not decided
// cheaply passes: the caller reads from a copy.
void check_no_partial_overlap(const Tensor& written, const Tensor& read);
// RuntimeError when `written` is known to overlap `read`, for operators that write in another order
// than they read.
void check_no_overlap(const Tensor& written, const Tensor& read);

}  // namespace taeda
