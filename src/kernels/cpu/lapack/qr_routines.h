// The routines behind QR decompositions.
#pragma once

#include "kernels/cpu/lapack/lapack.h"

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

  void factor(const ColumnMajor<T>& a, int rows, int columns, const Scratch<T>& tau) const {
    lapack_call_with_workspace<T>({2.0 * rows * columns * std::min(rows, columns), a.numel()},
                                  [=, f = geqrf, lda = a.rows()](T* work, int length) {
                                    int info = 0;
                                    f(&rows, &columns, a.data(), &lda, tau.data(), work, &length,
                                      &info);
                                    return info;
                                  });
  }
  void form_q(const ColumnMajor<T>& a, int rows, int columns, int reflectors,
              const Scratch<T>& tau) const {
    lapack_call_with_workspace<T>({2.0 * rows * columns * reflectors, a.numel()},
                                  [=, f = generate, lda = a.rows()](T* work, int length) {
                                    int info = 0;
                                    f(&rows, &columns, &reflectors, a.data(), &lda, tau.data(),
                                      work, &length, &info);
                                    return info;
                                  });
  }
};

}  // namespace taeda::cpu
