// Fourier transforms of lines as a chain of launches (text/fft.cuh).
#pragma once

#include "kernels/cuda/text/fft_args.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {

// Lines somewhere in device memory; strides are in bytes.
struct FftLines {
  char* data = nullptr;  // null: nothing is read
  int64_t stride = 0;    // from an element to the next
  DimVector strides;     // by the dimensions that lines are numbered by
  Access touched{};
};

// Transforms `to.length` elements of lines of those sizes, of the double or single precision. What
// the other members of `hooks` say of the elements is for the first pass and the last.
void run_fft_chain(Device device, bool wide, IntSpan sizes, const device::FftArgs& hooks,
                   const FftLines& in, const FftLines& out, const Access& factors = {});

// Lines of `length` complex numbers without gaps, at `data`.
FftLines dense_lines(char* data, bool wide, IntSpan sizes, int64_t length);

}  // namespace taeda::cuda
