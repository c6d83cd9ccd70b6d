// Transforms of one length: exp(-2 pi i / n) to the powers that its passes need.
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "kernels/cpu/fft/passes.h"

namespace taeda::cpu {

// X[k] = sum_j x[j] exp(-2 pi i j k / n), unscaled, of several interleaved transforms. Lengths with
// a prime factor above kLargestRadix are convolutions of a length without one (Bluestein, "A linear
// filtering approach to the computation of discrete Fourier transform", 1970).
template <class T>
class FftPlan {
 public:
  explicit FftPlan(int64_t n);
  // The plan for n, which this thread keeps for its next call.
  static std::shared_ptr<FftPlan> of(int64_t n);

  int64_t size() const { return n_; }
  // Elements of each of the four arrays that run() works in, for each interleaved transform.
  int64_t scratch() const { return inner_ ? inner_->n_ : n_; }
  // Element j of transform l is at [j * count + l] of `x`; the results are in what is returned,
  // which is `x` or `y`. The inverse transform, unscaled, is the one of {x.im, x.re}.
  Complexes<T> run(Complexes<T> x, Complexes<T> y, int64_t count) const;
  // exp(-pi i k / n), k = 0 ... n: for transforms of 2 n real numbers.
  const std::complex<T>* half_roots();

 private:
  struct Split {
    std::vector<T> re, im;
    void push(std::complex<double> z) {
      re.push_back(static_cast<T>(z.real()));
      im.push_back(static_cast<T>(z.imag()));
    }
    Complexes<const T> data() const { return {re.data(), im.data()}; }
  };
  struct Stage {
    int radix;
    int64_t m;
    Split twiddles, roots;
  };
  void make_stages(std::vector<int> radices);
  void make_chirp();
  Complexes<T> run_chirp(Complexes<T> x, Complexes<T> y, int64_t count) const;

  const int64_t n_;
  std::vector<Stage> stages_;
  std::vector<std::complex<T>> half_roots_;
  std::shared_ptr<FftPlan> inner_;  // Bluestein's convolution
  Split chirp_, filter_;            // exp(-pi i k^2 / n), and the transform of its conjugate
};

}  // namespace taeda::cpu
