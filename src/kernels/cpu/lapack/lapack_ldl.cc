// Bunch and Kaufman's factors A = L D L^T of symmetric matrices, or L D L^H of Hermitian ones, D of
// 1 x 1 and 2 x 2 blocks. All arguments have one batch shape.
#include "kernels/cpu/lapack/lapack.h"

namespace taeda::cpu {
namespace {

constexpr char kLower = 'L';

template <class T>
const char* routine(bool hermitian, bool solve) {
  if (kComplexLapack<T> && hermitian) return solve ? "hetrs" : "hetrf";
  return solve ? "sytrs" : "sytrf";
}

// LAPACK's own numbers: rows count from 1, and a block of two has two negative ones. What solving
// reads with others lies outside of the matrix.
void check_pivots(const int* pivots, int n) {
  for (int i = 0; i < n; i++) {
    TD_CHECK(std::abs(static_cast<int64_t>(pivots[i])) >= 1,
             "Pivots given to ldl_solve must all satisfy |pivot| >= 1. Did you properly pass the "
             "result of ldl_factor?");
    TD_CHECK(std::abs(static_cast<int64_t>(pivots[i])) <= n,
             "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly "
             "pass the result of ldl_factor?");
    if (pivots[i] > 0) continue;
    TD_CHECK(i + 1 < n && pivots[i + 1] < 0,
             "Negative pivots given to ldl_solve must come in pairs. Did you properly pass the "
             "result of ldl_factor?");
    i++;
    TD_CHECK(-static_cast<int64_t>(pivots[i]) >= 1 && -static_cast<int64_t>(pivots[i]) <= n,
             "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly "
             "pass the result of ldl_factor?");
  }
}

}  // namespace

void lapack_ldl_factor(const View& LD, const View& pivots, const View& info, const View& self,
                       bool hermitian) {
  for_lapack_type(self, [&]<class T>(T) {
    using F =
        void(const char*, const int*, T*, const int*, int*, T*, const int*, int*, StringLength);
    auto* const factor = lapack_for<T, F>(routine<T>(hermitian, /*solve=*/false));
    const Matrices m(self);
    const int n = m.rows;
    over_batch(m.count, n, [&](int64_t i) {
      int& status = info.as<int>()[i];
      status = 0;
      if (n == 0) return;
      const ColumnMajor<T> x(n, n);
      const Scratch<int> swaps(n);
      x.load(m, self, i);
      status =
          lapack_call_of_columns<T>({1.0 / 3 * n * n * n, x.numel()}, n, [=](T* work, int length) {
            int result = 0;
            factor(&kLower, &n, x.data(), &n, swaps.data(), work, &length, &result, 1);
            return result;
          });
      for (int column = 1; column < n; column++) std::fill_n(&x(0, column), column, T());
      x.store(LD, n, i);
      copy_elements(pivots.as<int>() + int64_t{n} * i, swaps.data(), n);
    });
  });
}

void lapack_ldl_solve(const View& result, const View& LD, const View& pivots, const View& B,
                      bool hermitian) {
  for_lapack_type(LD, [&]<class T>(T) {
    using F = void(const char*, const int*, const int*, const T*, const int*, const int*, T*,
                   const int*, int*, StringLength);
    auto* const solve = lapack_for<T, F>(routine<T>(hermitian, /*solve=*/true));
    const Matrices m(LD), b(B);
    const int n = m.rows;
    over_batch(m.count, n, [&](int64_t i) {
      const Scratch<int> swaps(n);
      copy_elements(swaps.data(), pivots.as<int>() + int64_t{n} * i, n);
      check_pivots(swaps.data(), n);
      if (b.each == 0) return;
      const ColumnMajor<T> x(n, n), y(n, b.columns);
      x.load(m, LD, i);
      y.load(b, B, i);
      lapack_call<T>({1.0 * n * n * b.columns, x.numel() + y.numel()}, [=, columns = b.columns] {
        int status = 0;
        solve(&kLower, &n, &columns, x.data(), &n, swaps.data(), y.data(), &n, &status, 1);
        return status;
      });
      y.store(result, b.columns, i);
    });
  });
}

}  // namespace taeda::cpu
