// Householder reflectors as geqrf leaves them: Q = H_1 ... H_k, H_i = I - tau_i v_i v_i^H, where
// v_i is 1 at i and stands below the diagonal of column i. All arguments have one batch shape.
#include "kernels/cpu/lapack/qr_routines.h"

namespace taeda::cpu {
namespace {

template <class T>
Scratch<T> loaded(const T* tau, int64_t count) {
  const Scratch<T> copy(count);
  copy_elements(copy.data(), tau, count);
  return copy;
}

}  // namespace

void lapack_geqrf(const View& a, const View& tau, const View& self) {
  for_lapack_type(a, [&]<class T>(T) {
    static const QrRoutines<T> routines;
    const Matrices m(self);
    const int k = std::min(m.rows, m.columns);
    over_batch(m.count, std::max(m.rows, m.columns), [&](int64_t i) {
      if (k == 0) return;
      const ColumnMajor<T> x(m.rows, m.columns);
      const Scratch<T> scales(k);
      x.load(m, self, i);
      routines.factor(x, m.rows, m.columns, scales);
      x.store(a, m.columns, i);
      copy_elements(tau.as<T>() + int64_t{k} * i, scales.data(), k);
    });
  });
}

// The first columns of Q, as many as the reflectors' matrix has.
void lapack_householder_product(const View& q, const View& input, const View& tau) {
  for_lapack_type(q, [&]<class T>(T) {
    static const QrRoutines<T> routines;
    const Matrices m(input);
    const int k = static_cast<int>(tau.sizes[tau.sizes.size() - 1]);
    over_batch(m.count, m.rows, [&](int64_t i) {
      if (m.columns == 0) return;
      const ColumnMajor<T> x(m.rows, m.columns);
      x.load(m, input, i);
      routines.form_q(x, m.rows, m.columns, k, loaded(tau.as<T>() + int64_t{k} * i, k));
      x.store(q, m.columns, i);
    });
  });
}

void lapack_ormqr(const View& result, const View& self, const View& tau, const View& other,
                  bool left, bool transpose) {
  for_lapack_type(result, [&]<class T>(T) {
    const MultiplyQ<T> multiply(left, transpose);
    const Matrices m(self), c(other);
    const int k = static_cast<int>(tau.sizes[tau.sizes.size() - 1]);
    over_batch(c.count, std::max(c.rows, c.columns), [&](int64_t i) {
      if (c.each == 0) return;
      const ColumnMajor<T> x(m.rows, m.columns), y(c.rows, c.columns);
      x.load(m, self, i);
      y.load(c, other, i);
      if (k > 0) multiply(x, loaded(tau.as<T>() + int64_t{k} * i, k), k, y, c.columns);
      y.store(result, c.columns, i);
    });
  });
}

}  // namespace taeda::cpu
