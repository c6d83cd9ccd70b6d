// Factorizations that solve systems: LU, Cholesky, inverse, triangular systems. All arguments have
// one batch shape; `info` is LAPACK's, one an element of the batch.
#include <algorithm>

#include "kernels/cpu/lapack/lapack.h"
#include "kernels/cpu/lapack/lu.h"
#include "kernels/cpu/lapack/rows.h"

namespace taeda::cpu {

namespace {

void check_pivot(int64_t row, int64_t rows) {
  TD_CHECK(row >= 0 && row < rows, "lu_unpack: pivots must lie in [1, {}], got {}", rows, row + 1);
}

// X with L U X = B in the place of B. Singular factors divide by zero: infinities and NaN, as in
// PyTorch, which what is derived from them cannot hide.
template <class T>
void solve_factored(const Strided<const T>& factors, int64_t n, const Rows<T>& b) {
  solve_triangle({false, true}, n, factors, b.strided(), b.whole_columns());
  solve_triangle({true, false}, n, factors, b.strided(), b.whole_columns());
}

// Up to this size an inverse is the solution for the identity's columns, as in PyTorch: halves,
// which do less for large ones, give zeros other signs, and these are printed.
constexpr int64_t kSmallInverse = 32;

// The inverse of a lower triangle with a unit diagonal in the place of the identity:
// [L11 0; L21 L22]^-1 = [X11 0; -L22^-1 L21 X11, X22].
template <class T>
void invert_unit_lower(int64_t n, const Strided<const T>& l, const Strided<T>& x) {
  constexpr Triangle kLower{false, true};
  if (n <= kSmallInverse) return solve_triangle(kLower, n, l, x, n);
  const int64_t half = first_half(n), other = n - half;
  invert_unit_lower(half, l, x);
  invert_unit_lower(other, l.from(half, half), x.from(half, half));
  const Strided<T> below = x.from(half, 0);
  parallel_gemm(kDTypeOf<T>, below.sized(other, half), l.from(half, 0).sized(other, half),
                x.sized(half, half), Scalar(-1));
  solve_triangle(kLower, other, l.from(half, half), below, half);
}

// A^-1 = U^-1 L^-1 P, column by column.
template <class T>
void invert_factored(const Lu<T>& lu, int64_t n, const Rows<T>& x, T* out) {
  x.set_identity();
  if (n <= kSmallInverse) {
    x.exchange(lu.pivots());
    solve_factored(lu.factors(), n, x);
    return x.store_columns(out);
  }
  invert_unit_lower(n, lu.factors(), x.strided());
  solve_triangle({true, false}, n, lu.factors(), x.strided(), n);
  x.store_columns(out);
  for (int64_t j = n - 1; j >= 0; j--) {
    T* const column = out + j * n;
    if (lu.pivots()[j] != j)
      std::swap_ranges(column, column + n, out + int64_t{lu.pivots()[j]} * n);
  }
}

}  // namespace

// A = P L U: L (unit diagonal) and U in one matrix, P as the row exchanged with row i, from 1.
void lapack_lu(const View& lu, const View& pivots, const View& info, const View& a) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a);
    const int k = std::min(m.rows, m.columns);
    std::fill_n(info.as<int>(), m.count, 0);
    if (k == 0) return;
    over_batch_chunks(m.count, std::max(m.rows, m.columns), [&](const auto& each) {
      Lu<T> factors(m.rows, m.columns);
      each([&](int64_t i) {
        info.as<int>()[i] = factors.factor(a.as<T>() + i * m.each, m.by_columns);
        factors.store(lu.as<T>() + i * m.each);
        std::transform(factors.pivots(), factors.pivots() + k, pivots.as<int>() + i * k,
                       [](int row) { return row + 1; });
      });
    });
  });
}

// The diagonal of U, and -1 where the rows were exchanged an odd number of times, else 1, of the
// matrix or its transpose, whichever is copied as it lies: both have the same determinant.
void lapack_lu_diagonal(const View& diagonal, const View& parity, const View& a) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a);
    const int n = m.rows;
    if (n == 0) {
      std::fill_n(parity.as<T>(), m.count, T(1));
      return;
    }
    over_batch_chunks(m.count, n, [&](const auto& each) {
      Lu<T> lu(n, n);
      each([&](int64_t i) {
        lu.factor(a.as<T>() + i * m.each, n <= kFewColumns);
        bool odd = false;
        for (int64_t j = 0; j < n; j++) {
          diagonal.as<T>()[i * n + j] = *lu.factors().at(j, j);
          odd ^= lu.pivots()[j] != j;
        }
        parity.as<T>()[i] = T(static_cast<Real<T>>(odd ? -1 : 1));
      });
    });
  });
}

void lapack_inverse(const View& out, const View& info, const View& a) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a);
    std::fill_n(info.as<int>(), m.count, 0);
    if (m.rows == 0) return;
    over_batch_chunks(m.count, m.rows, [&](const auto& each) {
      Lu<T> lu(m.rows, m.rows);
      const Rows<T> x(m.rows, m.rows);
      each([&](int64_t i) {
        info.as<int>()[i] = lu.factor(a.as<T>() + i * m.each, m.by_columns);
        invert_factored(lu, m.rows, x, out.as<T>() + i * m.each);
      });
    });
  });
}

// X with A X = B.
void lapack_solve(const View& out, const View& info, const View& a, const View& b) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a), right(b);
    std::fill_n(info.as<int>(), m.count, 0);
    if (m.rows == 0) return;
    over_batch_chunks(m.count, m.rows, [&](const auto& each) {
      Lu<T> lu(m.rows, m.rows);
      const Rows<T> x(m.rows, right.columns);
      each([&](int64_t i) {
        info.as<int>()[i] = lu.factor(a.as<T>() + i * m.each, m.by_columns);
        x.load(right, b, i);
        x.exchange(lu.pivots());
        solve_factored(lu.factors(), m.rows, x);
        x.store_columns(out.as<T>() + i * right.each);
      });
    });
  });
}

// The same from the factors of A; nothing is written unless all pivots are rows.
void lapack_lu_solve(const View& out, const View& lu, const View& pivots, const View& b) {
  for_lapack_type(lu, [&]<class T>(T) {
    const Matrices m(lu), right(b);
    const int64_t n = m.rows;
    if (right.each == 0 || m.count == 0) return;
    const Scratch<int> rows(pivots.numel);
    for (int64_t i = 0; i < pivots.numel; i++) {
      rows[i] = pivots.as<int>()[i] - 1;
      check_pivot(rows[i], n);
    }
    over_batch_chunks(m.count, m.rows, [&](const auto& each) {
      const Rows<T> x(m.rows, right.columns);
      each([&](int64_t i) {
        const T* const factors = lu.as<T>() + i * m.each;
        x.load(right, b, i);
        x.exchange(rows.data() + i * n);
        solve_factored({factors, m.by_columns ? 1 : n, m.by_columns ? n : 1}, n, x);
        x.store_columns(out.as<T>() + i * right.each);
      });
    });
  });
}

// X with A X = B, or X A = B unless `left`, for a triangular A; the other triangle is not read.
// X A = B is A^T X^T = B^T, and X^T lies row by row in X's columns.
void lapack_solve_triangular(const View& out, const View& a, const View& b, bool upper, bool left,
                             bool unitriangular) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a), right(b);
    if (right.each == 0) return;
    over_batch_chunks(m.count, m.rows, [&](const auto& each) {
      const Rows<T> rows(left ? m.rows : 0, right.columns);
      each([&](int64_t i) {
        T* const x = out.as<T>() + i * right.each;
        const T* const triangle = a.as<T>() + i * m.each;
        const Strided<const T> at{triangle, m.by_columns ? 1 : m.rows, m.by_columns ? m.rows : 1};
        if (!left) {
          copy_columns(x, right, b, i);
          return solve_triangle({!upper, unitriangular}, m.rows, at.transposed(),
                                Strided<T>{x, right.rows, 1}, right.rows);
        }
        rows.load(right, b, i);
        solve_triangle({upper, unitriangular}, m.rows, at, rows.strided(), rows.whole_columns());
        rows.store_columns(x);
      });
    });
  });
}

// The order of the first leading minor whose pivot is NaN, which not every LAPACK reports; or 0.
template <class T>
int first_nan_pivot(const T* factor, int64_t n) {
  for (int64_t j = 0; j < n; j++)
    if (!(factor[j * n + j] == factor[j * n + j])) return static_cast<int>(j) + 1;
  return 0;
}

namespace {

// Up to so many rows a call of LAPACK takes longer than the arithmetic of real numbers.
constexpr int kSmallPositive = 32;

// One such matrix: L of the lower triangle or U^T of the upper one, column by column in `columns`,
// which lie `stride` apart; `out` is column-major.
template <class T>
int small_cholesky(T* out, const T* a, const Matrices& m, bool upper, T* columns, int64_t stride) {
  const int64_t n = m.rows;
  const bool by_rows = upper == m.by_columns;  // what becomes a column
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = j; i < n; i++) columns[j * stride + i] = by_rows ? a[i * n + j] : a[j * n + i];
  const int status = lu_blocks<T>().factor_positive(columns, stride, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      out[upper ? i * n + j : j * n + i] = i < j ? T() : columns[j * stride + i];
  return status;
}

}  // namespace

// L L^H = A, or U^H U = A where `upper`; only that triangle of A is read.
void lapack_cholesky(const View& out, const View& info, const View& a, bool upper) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a);
    if constexpr (!kComplexLapack<T>) {
      if (m.rows <= kSmallPositive)
        return over_batch_chunks(m.count, m.rows, [&](const auto& each) {
          const int64_t stride = m.rows + lu_blocks<T>().slack;
          const Scratch<T> columns(m.rows * stride);
          std::fill_n(columns.data(), m.rows * stride, T());
          each([&](int64_t i) {
            info.as<int>()[i] = small_cholesky(out.as<T>() + i * m.each, a.as<T>() + i * m.each, m,
                                               upper, columns.data(), stride);
          });
        });
    }
    using F = void(const char*, const int*, T*, const int*, int*, StringLength);
    static auto* const potrf = lapack_for<T, F>("potrf");
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
      if (info.as<int>()[i] == 0) info.as<int>()[i] = first_nan_pivot(factor.data(), m.rows);
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
      check_pivot(other, rows);
      std::swap(permutation[row], permutation[other]);
    }
  }
}

}  // namespace taeda::cpu
