// Transforms of one length: how they are done, and the powers of exp(-2 pi i / n) for it.
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "kernels/cpu/fft/kernels.h"

namespace taeda::cpu {

// X[k] = sum_j x[j] exp(-2 pi i j k / n), unscaled. Lengths with a prime factor above kLargestRadix
// are convolutions of a length without one (Bluestein, "A linear filtering approach to the
// computation of discrete Fourier transform", 1970).
template <class T>
class FftPlan {
 public:
  explicit FftPlan(int64_t n);
  // The plan for n, which this thread keeps for its next call.
  static std::shared_ptr<FftPlan> of(int64_t n);

  int64_t size() const { return n_; }
  // For several transforms at once; null where n is a convolution or large.
  const FftColumns<T>* columns() const { return columns_.get(); }
  // Whether run() can do it: long lines with factors that make a matrix, and convolutions.
  bool has_line() const { return matrix_ || inner_; }
  // The transform of a line without gaps, or the inverse one, times `scale`, with scratch() numbers
  // of working memory. `in` may be `out`. Long ones run on several threads.
  void run(const T* in, T* out, T scale, bool backward, T* scratch) const;
  int64_t scratch() const;
  // -i exp(-pi i k / n), k = 0 ... n / 2: for transforms of 2 n real numbers.
  const T* half_roots();

 private:
  void make_chirp();
  void run_matrix(const T* in, T* out, T scale, bool backward, T* scratch) const;
  void run_chirp(const T* in, T* out, T scale, bool backward, T* scratch) const;

  const int64_t n_;
  std::unique_ptr<FftColumns<T>> columns_;
  std::unique_ptr<FftMatrix<T>> matrix_;
  std::vector<T> half_roots_;
  std::shared_ptr<FftPlan> inner_;  // Bluestein's convolution
  std::vector<T> chirp_, filter_;   // exp(-pi i k^2 / n), and the transform of its conjugate
};

}  // namespace taeda::cpu
