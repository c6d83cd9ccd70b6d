// Factorizations that solve systems: LU, Cholesky, inverse, triangular systems. All arguments are
// contiguous and have one batch shape; `info` is LAPACK's, one an element of the batch.
#include <algorithm>

#include "kernels/cpu/lapack.h"
#include "kernels_decl.h"

namespace taeda::cpu {

// A = P L U: L (unit diagonal) and U in one matrix, P as the row exchanged with row i, from 1.
void lapack_lu(const View& lu, const View& pivots, const View& info, const View& a) {
  for_lapack_type(a, [&]<class T>(T) {
    static auto* const getrf = lapacke_for<T, int(int, int, int, T*, int, int*)>("getrf");
    const Matrices m(a);
    const int k = std::min(m.rows, m.columns);
    over_batch(m.count, std::max(m.rows, m.columns), [&](int64_t i) {
      T* const out = lu.as<T>() + i * m.each;
      copy_elements(out, a.as<T>() + i * m.each, m.each);
      info.as<int>()[i] =
          m.each ? getrf(kRowMajor, m.rows, m.columns, out, m.columns, pivots.as<int>() + i * k)
                 : 0;
    });
  });
}

void lapack_inverse(const View& out, const View& info, const View& a) {
  for_lapack_type(a, [&]<class T>(T) {
    static auto* const getrf = lapacke_for<T, int(int, int, int, T*, int, int*)>("getrf");
    static auto* const getri = lapacke_for<T, int(int, int, T*, int, const int*)>("getri");
    const Matrices m(a);
    over_batch(m.count, m.rows, [&](int64_t i) {
      T* const x = out.as<T>() + i * m.each;
      copy_elements(x, a.as<T>() + i * m.each, m.each);
      std::vector<int> pivots(static_cast<size_t>(m.rows));
      int status = m.each ? getrf(kRowMajor, m.rows, m.rows, x, m.rows, pivots.data()) : 0;
      if (status == 0 && m.each) status = getri(kRowMajor, m.rows, x, m.rows, pivots.data());
      info.as<int>()[i] = status;
    });
  });
}

// X with A X = B.
void lapack_solve(const View& out, const View& info, const View& a, const View& b) {
  for_lapack_type(a, [&]<class T>(T) {
    static auto* const gesv = lapacke_for<T, int(int, int, int, T*, int, int*, T*, int)>("gesv");
    const Matrices m(a), right(b);
    over_batch(m.count, m.rows, [&](int64_t i) {
      T* const x = out.as<T>() + i * right.each;
      copy_elements(x, b.as<T>() + i * right.each, right.each);
      info.as<int>()[i] = 0;
      if (m.each == 0) return;
      const T* const from = a.as<T>() + i * m.each;
      std::vector<T> lu(from, from + m.each);
      std::vector<int> pivots(static_cast<size_t>(m.rows));
      // Without right sides LAPACK would not even look at the matrix.
      T none{};
      const int columns = right.columns;
      info.as<int>()[i] = gesv(kRowMajor, m.rows, columns, lu.data(), m.rows, pivots.data(),
                               columns ? x : &none, std::max(1, columns));
    });
  });
}

namespace {

// CBLAS takes real factors by value and complex ones by address.
template <class T>
void trsm(bool left, bool upper, bool unit, int rows, int columns, const T* a, int lda, T* b) {
  constexpr int kNoTranspose = 111;
  const int side = left ? 141 : 142, triangle = upper ? 121 : 122, diagonal = unit ? 132 : 131;
  const std::string name = std::string("cblas_") + lapack_letter<T>() + "trsm";
  if constexpr (kComplexLapack<T>) {
    using F = void(int, int, int, int, int, int, int, const void*, const void*, int, void*, int);
    static auto* const f = reinterpret_cast<F*>(cblas(name.c_str()));
    const T one = 1;
    f(kRowMajor, side, triangle, kNoTranspose, diagonal, rows, columns, &one, a, lda, b, columns);
  } else {
    using F = void(int, int, int, int, int, int, int, T, const T*, int, T*, int);
    static auto* const f = reinterpret_cast<F*>(cblas(name.c_str()));
    f(kRowMajor, side, triangle, kNoTranspose, diagonal, rows, columns, T(1), a, lda, b, columns);
  }
}

}  // namespace

// X with A X = B, or X A = B unless `left`, for a triangular A; the other triangle is not read.
void lapack_solve_triangular(const View& out, const View& a, const View& b, bool upper, bool left,
                             bool unitriangular) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a), right(b);
    over_batch(m.count, m.rows, [&](int64_t i) {
      T* const x = out.as<T>() + i * right.each;
      copy_elements(x, b.as<T>() + i * right.each, right.each);
      if (right.each == 0) return;
      trsm(left, upper, unitriangular, right.rows, right.columns, a.as<T>() + i * m.each, m.rows,
           x);
    });
  });
}

// L L^H = A, or U^H U = A where `upper`; only that triangle of A is read.
void lapack_cholesky(const View& out, const View& info, const View& a, bool upper) {
  for_lapack_type(a, [&]<class T>(T) {
    static auto* const potrf = lapacke_for<T, int(int, char, int, T*, int)>("potrf");
    const Matrices m(a);
    over_batch(m.count, m.rows, [&](int64_t i) {
      T* const x = out.as<T>() + i * m.each;
      copy_elements(x, a.as<T>() + i * m.each, m.each);
      info.as<int>()[i] = m.each ? potrf(kRowMajor, upper ? 'U' : 'L', m.rows, x, m.rows) : 0;
      for (int64_t row = 0; row < m.rows; row++) {
        T* const line = x + row * m.columns;
        if (upper)
          std::fill(line, line + row, T());
        else
          std::fill(line + row + 1, line + m.columns, T());
      }
    });
  });
}

// The permutation that row exchanges (from 1) amount to: row i of P^T A is row out[i] of A.
void lapack_permutation(const View& out, const View& pivots, int64_t rows) {
  const int64_t k = pivots.sizes[pivots.sizes.size() - 1];
  const int64_t count = k ? pivots.numel / k : (rows ? out.numel / rows : 0);
  for (int64_t i = 0; i < count; i++) {
    int64_t* const permutation = out.as<int64_t>() + i * rows;
    for (int64_t row = 0; row < rows; row++) permutation[row] = row;
    for (int64_t row = 0; row < k; row++) {
      const int64_t other = pivots.as<int>()[i * k + row] - 1;
      TD_CHECK(other >= 0 && other < rows, "lu_unpack: pivots must lie in [1, {}], got {}", rows,
               other + 1);
      std::swap(permutation[row], permutation[other]);
    }
  }
}

}  // namespace taeda::cpu
