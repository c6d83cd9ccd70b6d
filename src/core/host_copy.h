// The host's look at a tensor's elements. With Tensor::item_scalar the only place where it looks
// into a device's memory: each look waits for the device and is counted (host_reads()).
#pragma once

#include "taeda/tensor.h"

namespace taeda {

// `t` in host memory: itself where it lies there, else a copy with the same sizes and strides.
// NotImplementedError for meta tensors, which have no elements.
Tensor host_copy(const Tensor& t);

// What a tensor that stands for another (Key::kFunctionalize) stands for now; set by its owner.
extern Tensor (*functional_value)(const Tensor& t);

// The elements of a tensor with a conjugate or a negative bit as they read; set by its owner.
extern Tensor (*resolved_value)(const Tensor& t);

// Whether a tensor stands for a number of the program's text, whose value can be read.
bool is_written_number(const Tensor& t);

// RuntimeError: a value is asked that each sample of vmap may have another of.
[[noreturn]] void fail_value_of_samples();

// item() of a tensor that Python code (Key::kPython) answers for, or watches; set by its owner.
extern Scalar (*dispatched_item)(const Tensor& t);

}  // namespace taeda
