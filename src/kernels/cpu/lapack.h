// LAPACK over batches of row-major matrices: what lapack_solve.cc and lapack_decompose.cc share.
//
// Each matrix is one call on one thread; the pool splits the batch. LAPACKE's row-major form
// transposes into memory of its own, which costs n^2 beside n^3.
#pragma once

#include <atomic>
#include <complex>
#include <cstring>
#include <string>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/blas.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cpu {

inline constexpr int kRowMajor = 101;

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool kComplexLapack = !std::is_same_v<T, Real<T>>;

template <class T>
constexpr char lapack_letter() {
  constexpr bool single = std::is_same_v<Real<T>, float>;
  return kComplexLapack<T> ? (single ? 'c' : 'z') : (single ? 's' : 'd');
}

// A LAPACKE routine for T by its name without the letter of its type: "getrf".
template <class T, class F>
F* lapacke_for(const char* name) {
  return reinterpret_cast<F*>(lapacke((lapack_letter<T>() + std::string(name)).c_str()));
}

// f(T()) for the dtype of `x`, which the contract has restricted to these four.
template <class F>
void for_lapack_type(const View& x, const F& f) {
  with_dtype<WideInexact>(x.dtype, f);
}

// The batch of matrices in a contiguous view.
struct Matrices {
  explicit Matrices(const View& v)
      : rows(static_cast<int>(v.sizes[v.sizes.size() - 2])),
        columns(static_cast<int>(v.sizes[v.sizes.size() - 1])),
        each(int64_t{rows} * columns),
        count(1) {
    for (size_t i = 0; i + 2 < v.sizes.size(); i++) count *= v.sizes[i];
  }
  int rows, columns;
  int64_t each, count;
};

// f(i) for every matrix of a batch, each costing about n^3.
template <class F>
void over_batch(int64_t count, int64_t n, const F& f) {
  const int64_t work = std::max<int64_t>(1, n * n * n);
  parallel_for(0, count, std::max<int64_t>(1, (int64_t{1} << 18) / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; i++) f(i);
               });
}

template <class T>
void copy_elements(T* to, const T* from, int64_t n) {
  if (n > 0) std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
}

// The first failure of a batch, by the matrix's number.
class FirstFailure {
 public:
  void note(int64_t matrix, int code) {
    if (code == 0) return;
    int64_t seen = matrix_.load();
    while (matrix < seen && !matrix_.compare_exchange_weak(seen, matrix)) {
    }
    if (matrix_.load() == matrix) code_.store(code);
  }
  bool any() const { return matrix_.load() != INT64_MAX; }
  int code() const { return code_.load(); }
  // "linalg.svd: (Batch element 3): " or, without a batch, "linalg.svd: "
  std::string where(std::string_view name, bool batched) const {
    return batched ? format("{}: (Batch element {}): ", name, matrix_.load())
                   : format("{}: ", name);
  }

 private:
  std::atomic<int64_t> matrix_{INT64_MAX};
  std::atomic<int> code_{0};
};

}  // namespace taeda::cpu
