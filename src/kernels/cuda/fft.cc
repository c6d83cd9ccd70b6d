// Fourier transforms of tensors, dimension by dimension (text/fft.cuh).
#include <cmath>

#include "kernels/cuda/array.h"
#include "kernels/cuda/fft_transform.h"

namespace taeda::cuda {
namespace {

using device::FftForm;

// The factor of a normalization: 0 none, 1 the root of the number of elements, 2 the number.
double factor(int64_t normalization, const View& elements, IntSpan dims) {
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(elements.sizes[d]);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

void complex(const View& out, const View& in, int64_t dim, bool inverse, double scale = 1) {
  run_fft({out, in, dim, FftForm::kComplex, FftForm::kComplex, inverse, scale});
}

}  // namespace

void fft_c2c(const View& out, const View& self, IntSpan dim, int64_t normalization, bool forward) {
  if (out.numel == 0) return;
  const double scale = factor(normalization, out, dim);
  for (size_t i = 0; i < dim.size(); i++)
    complex(out, i ? out : self, dim[i], !forward, i ? 1 : scale);
}

void fft_r2c(const View& out, const View& self, IntSpan dim, int64_t normalization, bool) {
  if (out.numel == 0) return;
  const double scale = factor(normalization, self, dim);
  run_fft({out, self, dim.back(), FftForm::kReal, FftForm::kComplex, false, scale});
  for (size_t i = 0; i + 1 < dim.size(); i++) complex(out, out, dim[i], false);
}

void fft_c2r(const View& out, const View& self, IntSpan dim, int64_t normalization, int64_t) {
  if (out.numel == 0) return;
  const double scale = factor(normalization, out, dim);
  const auto finish = [&](const View& in) {
    run_fft({out, in, dim.back(), FftForm::kHermitian, FftForm::kReal, true, scale});
  };
  if (dim.size() == 1) return finish(self);
  const Dense copy(self.device, self.dtype, self.sizes);
  for (size_t i = 0; i + 1 < dim.size(); i++) complex(copy, i ? copy.view() : self, dim[i], true);
  finish(copy);
}

}  // namespace taeda::cuda
