// Reductions of dense tensors to one element each as two launches for many: what makes
// torch._foreach_norm of CUDA's tensors a list's (device/put_off.h).
#pragma once

#include "kernels/cuda/reduce.h"

namespace taeda::cuda {

// Puts one off that comes between begin_list() and end_list(), if its kernels are for lists, too:
// whether it did.
bool put_off_reduction(const Reduction& what, const View& out, const View& x);

}  // namespace taeda::cuda
