// Pointwise functors on a CUDA device (text/pointwise.cuh).
#pragma once

#include <string_view>

#include "kernels/view.h"

namespace taeda::cuda {

// A functor among the kernels, and its fields.
struct Loop {
  std::string_view name;
  uint8_t fields;
  bool scalars;     // they are Scalars, which the kernel has in the type that it computes in; else
                    // doubles
  DTypeSet listed;  // of which there are kernels for several calls (launch_list.h)
};

struct PointwiseCall {
  const Loop& loop;
  DType compute, result;  // what it computes in, and what comes of that
  const void* fields;     // their values, one after the other
};

// out = functor(in...) on the device's current stream. Inputs have out's sizes (broadcast
// dimensions with stride 0); one on the CPU is one element. Operands of any arithmetic dtypes: real
// where the functor computes with real numbers. An input may be the same memory as `out` in the
// same layout.
void pointwise(const PointwiseCall& call, const View& out, Span<const View> in);

}  // namespace taeda::cuda
