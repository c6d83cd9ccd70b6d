// Factorizations that solve systems: LU, Cholesky, inverse, triangular systems. All arguments have
// one batch shape; `info` is LAPACK's, one an element of the batch.
#include <algorithm>

#include "kernels/cpu/lapack/lapack.h"

namespace taeda::cpu {

namespace {

// The factors of a matrix in its place; LAPACK's info.
template <class T>
int factor_lu(const ColumnMajor<T>& a, int rows, int columns, const Scratch<int>& pivots) {
  using F = void(const int*, const int*, T*, const int*, int*, int*);
  static auto* const getrf = lapack_for<T, F>("getrf");
  return lapack_call<T>({1.0 * rows * columns * std::min(rows, columns), a.numel()}, [=] {
    const int lda = a.rows();
    int info = 0;
    getrf(&rows, &columns, a.data(), &lda, pivots.data(), &info);
    return info;
  });
}

// Up to this size an inverse is the solution for the identity's columns, as in PyTorch: getri,
// which does less for large ones, gives zeros other signs, and these are printed.
constexpr int kSmallInverse = 32;

template <class T>
int invert(const ColumnMajor<T>& factors, int n, const Scratch<int>& pivots) {
  using F = void(const int*, T*, const int*, const int*, T*, const int*, int*);
  static auto* const getri = lapack_for<T, F>("getri");
  const auto call = [=](T* work, int length) {
    int info = 0;
    getri(&n, factors.data(), &n, pivots.data(), work, &length, &info);
    return info;
  };
  return lapack_call_with_workspace<T>({1.5 * n * n * n, factors.numel()}, call);
}

// X with A X = B in the place of B. Singular factors divide by zero: infinities and NaN, as in
// PyTorch, which what is derived from them cannot hide.
template <class T>
void solve_factored(const ColumnMajor<T>& factors, const Scratch<int>& pivots,
                    const ColumnMajor<T>& b, int columns) {
  using F = void(const char*, const int*, const int*, const T*, const int*, const int*, T*,
                 const int*, int*, StringLength);
  static auto* const getrs = lapack_for<T, F>("getrs");
  const int n = factors.rows();
  lapack_call<T>({1.0 * n * n * columns, factors.numel() + b.numel()}, [=, f = getrs] {
    int info = 0;
    f("N", &n, &columns, factors.data(), &n, pivots.data(), b.data(), &n, &info, 1);
    return info;
  });
}

template <class T>
void set_identity(const ColumnMajor<T>& x, int n) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) x.data()[int64_t{j} * n + i] = T(i == j);
}

// X A = B, or X A^T = B where `transposed`, in the place of B, column-major; A may be row-major,
// which is its transpose column by column. CBLAS takes real factors by value and complex ones by
// address.
template <class T>
void trsm(bool upper, bool transposed, bool unit, int rows, int n, const T* a, bool by_columns,
          T* b, int ldb) {
  constexpr int kColumnMajor = 102, kRight = 142;
  const int triangle = upper == by_columns ? 121 : 122,
            transpose = transposed == by_columns ? 112 : 111, diagonal = unit ? 132 : 131;
  const std::string name = std::string("cblas_") + lapack_letter<T>() + "trsm";
  if constexpr (kComplexLapack<T>) {
    using F = void(int, int, int, int, int, int, int, const void*, const void*, int, void*, int);
    static auto* const f = reinterpret_cast<F*>(cblas(name.c_str()));
    const T one = 1;
    f(kColumnMajor, kRight, triangle, transpose, diagonal, rows, n, &one, a, n, b, ldb);
  } else {
    using F = void(int, int, int, int, int, int, int, T, const T*, int, T*, int);
    static auto* const f = reinterpret_cast<F*>(cblas(name.c_str()));
    f(kColumnMajor, kRight, triangle, transpose, diagonal, rows, n, T(1), a, n, b, ldb);
  }
}

constexpr int64_t kSolvedTogether = 64;  // right sides, at least: each call reads all of A

// X A = B, or X A^T = B, for `count` rows of X, in the place of B: they do not regard each other.
template <class T>
void solve_rows(bool upper, bool transposed, bool unit, int64_t count, int n, const T* a,
                bool by_columns, T* b) {
  const int64_t grain = std::max<int64_t>(kSolvedTogether, (int64_t{1} << 27) / (int64_t{n} * n));
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    const OpenBlasCall in_openblas;
    trsm(upper, transposed, unit, static_cast<int>(end - begin), n, a, by_columns, b + begin,
         static_cast<int>(count));
  });
}

// The same as solve_factored, of X^T, whose rows are solved for on several threads.
template <class T>
void solve_factored_rows(const ColumnMajor<T>& factors, const Scratch<int>& pivots, int64_t count,
                         T* x) {
  const int n = factors.rows();
  for (int i = 0; i < n; i++) {
    T *const a = x + i * count, *const b = x + (pivots[i] - 1) * count;
    if (a != b) std::swap_ranges(a, a + count, b);
  }
  solve_rows(false, true, true, count, n, factors.data(), true, x);
  solve_rows(true, true, false, count, n, factors.data(), true, x);
}

// From this size on OpenBLAS' solvers of single precision take longer.
template <class T>
bool solves_rows(int n) {
  return std::is_same_v<T, float> && n > 128;
}

}  // namespace

// A = P L U: L (unit diagonal) and U in one matrix, P as the row exchanged with row i, from 1.
void lapack_lu(const View& lu, const View& pivots, const View& info, const View& a) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a);
    const int k = std::min(m.rows, m.columns);
    over_batch(m.count, std::max(m.rows, m.columns), [&](int64_t i) {
      info.as<int>()[i] = 0;
      if (m.each == 0) return;
      const ColumnMajor<T> x(m.rows, m.columns);
      const Scratch<int> exchanged(k);
      x.load(m, a, i);
      info.as<int>()[i] = factor_lu(x, m.rows, m.columns, exchanged);
      copy_elements(pivots.as<int>() + i * k, exchanged.data(), k);
      x.store(lu, m.columns, i);
    });
  });
}

void lapack_inverse(const View& out, const View& info, const View& a) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a);
    over_batch(m.count, m.rows, [&](int64_t i) {
      info.as<int>()[i] = 0;
      if (m.each == 0) return;
      const ColumnMajor<T> x(m.rows, m.rows);
      const Scratch<int> pivots(m.rows);
      x.load(m, a, i);
      const int status = info.as<int>()[i] = factor_lu(x, m.rows, m.rows, pivots);
      if (status == 0 && m.rows > kSmallInverse) {
        info.as<int>()[i] = invert(x, m.rows, pivots);
        return x.store(out, m.rows, i);
      }
      const ColumnMajor<T> columns(m.rows, m.rows);
      set_identity(columns, m.rows);
      if (status >= 0) solve_factored(x, pivots, columns, m.rows);
      columns.store(out, m.rows, i);
    });
  });
}

// X with A X = B.
void lapack_solve(const View& out, const View& info, const View& a, const View& b) {
  for_lapack_type(a, [&]<class T>(T) {
    using F = void(const int*, const int*, T*, const int*, int*, T*, const int*, int*);
    static auto* const gesv = lapack_for<T, F>("gesv");
    const Matrices m(a), right(b);
    over_batch(m.count, m.rows, [&](int64_t i) {
      info.as<int>()[i] = 0;
      if (m.each == 0) return;
      const ColumnMajor<T> lu(m.rows, m.rows);
      const Scratch<int> pivots(m.rows);
      lu.load(m, a, i);
      if (solves_rows<T>(m.rows) && right.columns >= kSolvedTogether) {
        info.as<int>()[i] = factor_lu(lu, m.rows, m.rows, pivots);
        const ColumnMajor<T> rows(right.columns, m.rows);
        copy_rows(rows.data(), right, b, i);
        solve_factored_rows(lu, pivots, right.columns, rows.data());
        return transpose_columns(out.as<T>() + i * right.each, rows.data(), m.rows, right.columns,
                                 b.dtype);
      }
      // Without right sides LAPACK would not even look at the matrix.
      const ColumnMajor<T> x(m.rows, std::max(1, right.columns));
      x.load(right, b, i);
      const LapackCost cost{1.0 * m.rows * m.rows * (m.rows + right.columns),
                            lu.numel() + x.numel()};
      info.as<int>()[i] = lapack_call<T>(cost, [=, n = m.rows, columns = right.columns, f = gesv] {
        int status = 0;
        f(&n, &columns, lu.data(), &n, pivots.data(), x.data(), &n, &status);
        return status;
      });
      if (info.as<int>()[i] > 0) solve_factored(lu, pivots, x, right.columns);
      x.store(out, right.columns, i);
    });
  });
}

// X with A X = B, or X A = B unless `left`, for a triangular A; the other triangle is not read.
// With A on the left X^T is computed: OpenBLAS is a third slower from that side.
void lapack_solve_triangular(const View& out, const View& a, const View& b, bool upper, bool left,
                             bool unitriangular) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a), right(b);
    over_batch(m.count, m.rows, [&](int64_t i) {
      T* const x = out.as<T>() + i * right.each;
      if (right.each == 0) return;
      const ColumnMajor<T> transposed(left ? right.columns : 0, right.rows);
      T* const solved = left ? transposed.data() : x;
      if (left)
        copy_rows(solved, right, b, i);
      else
        copy_columns(x, right, b, i);
      solve_rows(upper, left, unitriangular, left ? right.columns : right.rows, m.rows,
                 a.as<T>() + i * m.each, m.by_columns, solved);
      if (left) transpose_columns(x, solved, right.rows, right.columns, b.dtype);
    });
  });
}

// L L^H = A, or U^H U = A where `upper`; only that triangle of A is read.
void lapack_cholesky(const View& out, const View& info, const View& a, bool upper) {
  for_lapack_type(a, [&]<class T>(T) {
    using F = void(const char*, const int*, T*, const int*, int*, StringLength);
    static auto* const potrf = lapack_for<T, F>("potrf");
    const Matrices m(a);
    over_batch(m.count, m.rows, [&](int64_t i) {
      info.as<int>()[i] = 0;
      if (m.each == 0) return;
      const ColumnMajor<T> factor(m.rows, m.rows);
      factor.load(m, a, i);
      const LapackCost cost{0.5 * m.rows * m.rows * m.rows, factor.numel()};
      info.as<int>()[i] = lapack_call<T>(cost, [=, n = m.rows, f = potrf] {
        const char triangle = upper ? 'U' : 'L';
        int status = 0;
        f(&triangle, &n, factor.data(), &n, &status, 1);
        return status;
      });
      T* const x = out.as<T>() + i * m.each;
      factor.store(out, m.columns, i);
      for (int64_t j = 0; j < m.columns; j++) {
        T* const column = x + j * m.rows;
        if (upper)
          std::fill(column + j + 1, column + m.rows, T());
        else
          std::fill(column, column + j, T());
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
      const int64_t other = int64_t{pivots.as<int>()[i * k + row]} - 1;
      TD_CHECK(other >= 0 && other < rows, "lu_unpack: pivots must lie in [1, {}], got {}", rows,
               other + 1);
      std::swap(permutation[row], permutation[other]);
    }
  }
}

}  // namespace taeda::cpu
