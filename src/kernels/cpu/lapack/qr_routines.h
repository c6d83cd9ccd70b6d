// The routines behind QR decompositions.
#pragma once

#include "kernels/cpu/lapack/lapack.h"
#include "kernels/cpu/lapack/small_qr.h"

namespace taeda::cpu {

// What geqrf and orgqr (ungqr of complex matrices) need: A becomes R above Householder reflectors,
// and these Q.
template <class T>
struct QrRoutines {
  using Factor = void(const int*, const int*, T*, const int*, T*, T*, const int*, int*);
  using Generate = void(const int*, const int*, const int*, T*, const int*, const T*, T*,
                        const int*, int*);
  Factor* const geqrf = lapack_for<T, Factor>("geqrf");
  Generate* const generate = lapack_for<T, Generate>(kComplexLapack<T> ? "ungqr" : "orgqr");

  // Few columns, and no more rows than stay in the first cache with them.
  static constexpr bool is_small(int rows, int columns) {
    return columns <= kUnblockedLapack && rows <= kMostRows;
  }

  void factor(const ColumnMajor<T>& a, int rows, int columns, const Scratch<T>& tau) const {
    if (is_small(rows, columns)) return small_qr<T>().factor(a.data(), rows, columns, tau.data());
    lapack_call_of_columns<T>({2.0 * rows * columns * std::min(rows, columns), a.numel()}, columns,
                              [=, f = geqrf, lda = a.rows()](T* work, int length) {
                                int info = 0;
                                f(&rows, &columns, a.data(), &lda, tau.data(), work, &length,
                                  &info);
                                return info;
                              });
  }
  void form_q(const ColumnMajor<T>& a, int rows, int columns, int reflectors,
              const Scratch<T>& tau) const {
    if (is_small(rows, columns))
      return small_qr<T>().generate(a.data(), rows, columns, reflectors, tau.data());
    lapack_call_of_columns<T>({2.0 * rows * columns * reflectors, a.numel()}, columns,
                              [=, f = generate, lda = a.rows()](T* work, int length) {
                                int info = 0;
                                f(&rows, &columns, &reflectors, a.data(), &lda, tau.data(), work,
                                  &length, &info);
                                return info;
                              });
  }
};

// other <- Q other, other Q, Q^H other or other Q^H.
template <class T>
struct MultiplyQ {
  using F = void(const char*, const char*, const int*, const int*, const int*, const T*, const int*,
                 const T*, T*, const int*, T*, const int*, int*, StringLength, StringLength);
  F* const routine = lapack_for<T, F>(kComplexLapack<T> ? "unmqr" : "ormqr");
  const char side, adjoint;

  MultiplyQ(bool left, bool transpose)
      : side(left ? 'L' : 'R'),
        adjoint(!transpose          ? 'N'
                : kComplexLapack<T> ? 'C'
                                    : 'T') {}
  void operator()(const ColumnMajor<T>& reflectors, const Scratch<T>& tau, int count,
                  const ColumnMajor<T>& other, int columns) const {
    const int rows = static_cast<int>(other.numel() / columns);
    if (QrRoutines<T>::is_small(std::max(rows, columns), count))
      return small_qr<T>().multiply(reflectors.data(), reflectors.rows(), count, tau.data(),
                                    other.data(), rows, columns, side == 'L', adjoint != 'N');
    lapack_call_with_workspace<T>(
        {4.0 * rows * columns * count, reflectors.numel() + other.numel()},
        [=, f = routine, side = side, adjoint = adjoint, lda = reflectors.rows(),
         ldc = other.rows()](T* work, int length) {
          int info = 0;
          f(&side, &adjoint, &rows, &columns, &count, reflectors.data(), &lda, tau.data(),
            other.data(), &ldc, work, &length, &info, 1, 1);
          return info;
        });
  }
};

}  // namespace taeda::cpu
