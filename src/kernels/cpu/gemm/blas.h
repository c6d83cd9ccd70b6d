// OpenBLAS, opened when first needed: complex products, small real ones, LAPACK.
//
// It is the build of the PyPI package scipy-openblas32 (names start with scipy_, 32-bit integers)
// and runs each call on the calling thread: taeda's own pool splits the work. Calls from several
// threads at once are safe.
#pragma once

#include <atomic>
#include <complex>
#include <cstdint>

namespace taeda::cpu {

// CBLAS's codes.
enum class BlasOrder : int { kRowMajor = 101 };
enum class BlasTranspose : int { kNone = 111, kTranspose = 112 };

struct Blas {
  template <class T>
  using Gemm = void(BlasOrder, BlasTranspose, BlasTranspose, int m, int n, int k, T alpha,
                    const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);
  using ComplexGemm = void(BlasOrder, BlasTranspose, BlasTranspose, int m, int n, int k,
                           const void* alpha, const void* a, int lda, const void* b, int ldb,
                           const void* beta, void* c, int ldc);
  template <class T>
  using Gemv = void(BlasOrder, BlasTranspose, int m, int n, T alpha, const T* a, int lda,
                    const T* x, int incx, T beta, T* y, int incy);

  Gemm<float>* sgemm;
  Gemm<double>* dgemm;
  ComplexGemm* cgemm;
  ComplexGemm* zgemm;
  Gemv<float>* sgemv;
  Gemv<double>* dgemv;
};

// Stands around each call of OpenBLAS. The first that so many threads make at once need one more of
// its buffers; where there is no memory for it OpenBLAS ends the process, so it is asked for
// before: OutOfMemoryError.
class OpenBlasCall {
 public:
  OpenBlasCall() {
    const int callers = callers_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (callers > buffers_.load(std::memory_order_relaxed)) [[unlikely]]
      find_memory(callers);
  }
  ~OpenBlasCall() { callers_.fetch_sub(1, std::memory_order_relaxed); }
  OpenBlasCall(const OpenBlasCall&) = delete;
  OpenBlasCall& operator=(const OpenBlasCall&) = delete;

  // In a child of fork, the calls of the parent's other threads do not go on.
  static void forget_callers_after_fork();

 private:
  static void find_memory(int callers);
  static std::atomic<int> callers_, buffers_;
};

// RuntimeError saying where it was looked for when OpenBLAS cannot be opened.
const Blas& blas();

// The copy beside libtaeda has the routines of openblas_routines.txt only.

// One of CBLAS by its name ("cblas_dtrsm").
void* cblas(const char* name);
// A LAPACK routine by its Fortran name without prefix and underscore ("dgetrf"); RuntimeError when
// there is none.
void* lapack(const char* name);

}  // namespace taeda::cpu
