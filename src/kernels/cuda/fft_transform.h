// A Fourier transform along one dimension of Views (text/fft.cuh).
#pragma once

#include "kernels/cuda/text/fft_args.h"
#include "kernels/view.h"

namespace taeda::cuda {

struct FftTransform {
  const View& out;
  const View& in;  // may be `out`
  int64_t dim;
  device::FftForm from, to;
  bool inverse;  // unscaled but for
  double scale;
};
// RuntimeError for lines that are too long for kernels.
void run_fft(const FftTransform& transform);

}  // namespace taeda::cuda
