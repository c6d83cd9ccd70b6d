// The passes of a Stockham FFT over split arrays (real and imaginary parts apart).
//
// Stockham's autosort algorithm (Cochran et al., "What is the fast Fourier transform?", 1967; Van
// Loan, "Computational Frameworks for the Fast Fourier Transform", 1992, 1.7): a transform of
// n = r m elements, s of which are interleaved, takes element q + s (p + m k) of x, k = 0 ... r -
// 1, through a butterfly of radix r, multiplies result j by exp(-2 pi i p j / n) and stores it at
// q + s (r p + j) of y, where m-element transforms, s r interleaved, go on. Nothing is permuted.
#pragma once

#include <cstdint>

namespace taeda::cpu {

constexpr int kLargestRadix = 61;

template <class T>
struct Complexes {
  T* re;
  T* im;
};

// One pass: m and s as above. `twiddles` has (radix - 1) m numbers, exp(-2 pi i p j / n) at
// p (radix - 1) + j - 1; `roots` the `radix` numbers exp(-2 pi i j / radix).
template <class T>
struct FftPass {
  int radix;
  int64_t m, s;
  Complexes<const T> twiddles, roots;
  int64_t begin, end;  // of p
};

void run_pass(const FftPass<float>& pass, Complexes<const float> x, Complexes<float> y);
void run_pass(const FftPass<double>& pass, Complexes<const double> x, Complexes<double> y);

}  // namespace taeda::cpu
