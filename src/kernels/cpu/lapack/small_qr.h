// QR decomposition of small real matrices, by Householder's reflectors one after the other: a call
// of LAPACK takes longer than the arithmetic.
#pragma once

namespace taeda::cpu {

// geqrf of a column-major matrix without gaps: R, below it the vectors v_k without their leading 1,
// and H_k = I - tau[k] v_k v_k^T [Golub and Van Loan, "Matrix Computations", 5.2].
void small_qr_factor(float* a, int rows, int columns, float* tau);
void small_qr_factor(double* a, int rows, int columns, double* tau);
// orgqr: the first `columns` columns of H_1 ... H_reflectors, in place of the vectors.
void small_qr_generate(float* a, int rows, int columns, int reflectors, const float* tau);
void small_qr_generate(double* a, int rows, int columns, int reflectors, const double* tau);

}  // namespace taeda::cpu
