// What generated bindings include besides the operators they call (op/NAME.h): argument parsing and
// results.
#pragma once

#include "python/arguments.h"
#include "python/wrap.h"

namespace taeda::python {

// The five arguments of factory functions from index `first` on: dtype, layout, device, pin_memory,
// requires_grad.
TensorOptions tensor_options(const Arguments& arguments, int first);
// RuntimeError where a factory is asked for another dtype or device than that of `out`.
void require_options_of(const Tensor& out, const TensorOptions& options);
// A tuple of exactly `count` tensors given as out=.
TensorList output_tensors(const Arguments& arguments, int i, size_t count);

}  // namespace taeda::python
