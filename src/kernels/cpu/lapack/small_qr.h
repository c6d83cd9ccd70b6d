// QR decomposition of small matrices, by Householder's reflectors one after the other: a call of
// LAPACK takes longer than the arithmetic.
#pragma once

#include <complex>

namespace taeda::cpu {

constexpr int kMostRows = 128;  // of these matrices

template <class T>
struct SmallQr {
  // geqrf of a column-major matrix without gaps: R, below it the vectors v_k without their leading
  // 1, and H_k^H = I - conj(tau[k]) v_k v_k^H [Golub and Van Loan, "Matrix Computations", 5.2].
  void (*factor)(T* a, int rows, int columns, T* tau);
  // orgqr: the first `columns` columns of H_1 ... H_reflectors, in place of the vectors.
  void (*generate)(T* a, int rows, int columns, int reflectors, const T* tau);
  // ormqr: other <- Q other, or other Q unless `left`, with Q^H if `adjoint`; Q is of `count`
  // vectors of n elements.
  void (*multiply)(T* v, int n, int count, const T* tau, T* other, int rows, int columns, bool left,
                   bool adjoint);
};

// For the widest instruction set of this machine; T is real or complex.
template <class T>
const SmallQr<T>& small_qr();
template <>
const SmallQr<float>& small_qr();
template <>
const SmallQr<double>& small_qr();
template <>
const SmallQr<std::complex<float>>& small_qr();
template <>
const SmallQr<std::complex<double>>& small_qr();

}  // namespace taeda::cpu
