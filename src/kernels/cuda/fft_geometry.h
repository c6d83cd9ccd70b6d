// How a pass of a Fourier transform is dealt to blocks (text/fft.cuh).
#pragma once

#include "kernels/cuda/fft_chain.h"

namespace taeda::cuda {

// Where the lines of `in` and `out` begin, neighbours in memory last. `columns` and `before` are
// known.
void set_lines(device::FftArgs& args, IntSpan sizes, const FftLines& in, const FftLines& out);
// How a block transforms `points` elements, several times at once, in shared memory for `capacity`.
// set_lines has been called.
void set_points(device::FftArgs& args, int64_t points, uint32_t capacity);

}  // namespace taeda::cuda
