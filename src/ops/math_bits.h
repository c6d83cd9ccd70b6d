// The conjugate and the negative bit: tensors whose elements are the conjugates, or the negatives,
// of what lies in their memory.
//
// conj() and the imaginary part of a conjugate are views (PyTorch's): they alias the storage and
// turn a bit over, a key of the tensor (Key::kConjugate, Key::kNegative), which further views pass
// on. Any other operator meets the keys' handler, which hands it the elements as they read
// (resolved) and writes what it changed back through the bits. So no kernel knows of them, and
// whoever looks into memory by himself asks is_conj() and is_neg() first.
#pragma once

#include "taeda/operator.h"

namespace taeda::math_bits {

// An alias of `t`, no view to autograd, whose bits are `bits`.
Tensor with_bits(const Tensor& t, KeySet bits);
// `t` itself where it has no bits, else a copy of its elements as they read.
Tensor resolved(const Tensor& t);
// The handler of both keys for all operators.
void handle(const Operator& op, KeySet keys, Stack& stack);

}  // namespace taeda::math_bits
