// Decompositions: QR, SVD, eigenvalues. All arguments are contiguous and have one batch shape.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/lapack.h"
#include "kernels_decl.h"

namespace taeda::cpu {

// A = Q R. Q's columns: min(m, n), or m for the complete Q; an empty Q is not computed.
void lapack_qr(const View& q, const View& r, const View& a, int64_t /*q_columns*/,
               int64_t /*r_rows*/) {
  for_lapack_type(a, [&]<class T>(T) {
    using Generate = int(int, int, int, int, T*, int, const T*);
    static auto* const geqrf = lapacke_for<T, int(int, int, int, T*, int, T*)>("geqrf");
    static auto* const generate = lapacke_for<T, Generate>(kComplexLapack<T> ? "ungqr" : "orgqr");
    const Matrices m(a), upper(r);
    const bool with_q = q.ndim() >= 2;
    const int k = std::min(m.rows, m.columns);
    const int q_columns = with_q ? static_cast<int>(q.sizes[q.sizes.size() - 1]) : 0;
    const int width = std::max(m.columns, q_columns);
    over_batch(m.count, std::max(m.rows, m.columns), [&](int64_t i) {
      // room for A and for Q, whose columns overwrite A's
      std::vector<T> work(static_cast<size_t>(int64_t{m.rows} * width)),
          tau(static_cast<size_t>(k));
      for (int64_t row = 0; row < m.rows; row++)
        copy_elements(work.data() + row * width, a.as<T>() + i * m.each + row * m.columns,
                      m.columns);
      if (k > 0) geqrf(kRowMajor, m.rows, m.columns, work.data(), width, tau.data());
      for (int64_t row = 0; row < upper.rows; row++) {
        T* const line = r.as<T>() + i * upper.each + row * upper.columns;
        for (int64_t c = 0; c < upper.columns; c++)
          line[c] = c < row ? T() : work[static_cast<size_t>(row * width + c)];
      }
      if (!with_q || q_columns == 0) return;
      if (k == 0) {  // nothing to reflect: Q is the identity
        for (int64_t row = 0; row < m.rows; row++)
          work[static_cast<size_t>(row * width + row)] = T(1);
      } else {
        generate(kRowMajor, m.rows, q_columns, k, work.data(), width, tau.data());
      }
      for (int64_t row = 0; row < m.rows; row++)
        copy_elements(q.as<T>() + (i * m.rows + row) * q_columns, work.data() + row * width,
                      q_columns);
    });
  });
}

// A = U diag(S) Vh. An empty U and Vh are not computed.
void lapack_svd(const View& u, const View& s, const View& vh, const View& a, bool full_matrices,
                bool compute_uv) {
  for_lapack_type(a, [&]<class T>(T) {
    using Gesdd = int(int, char, int, int, T*, int, Real<T>*, T*, int, T*, int);
    static auto* const gesdd = lapacke_for<T, Gesdd>("gesdd");
    const Matrices m(a);
    const int k = std::min(m.rows, m.columns);
    const int u_columns = full_matrices ? m.rows : k, vh_rows = full_matrices ? m.columns : k;
    FirstFailure failure;
    over_batch(m.count, std::max(m.rows, m.columns), [&](int64_t i) {
      T* const to_u = compute_uv ? u.as<T>() + i * m.rows * u_columns : nullptr;
      T* const to_vh = compute_uv ? vh.as<T>() + i * vh_rows * m.columns : nullptr;
      if (k == 0) {
        for (int64_t j = 0; compute_uv && full_matrices && j < m.rows * m.rows; j++)
          to_u[j] = T(j % (m.rows + 1) == 0);
        for (int64_t j = 0; compute_uv && full_matrices && j < m.columns * m.columns; j++)
          to_vh[j] = T(j % (m.columns + 1) == 0);
        return;
      }
      const T* const from = a.as<T>() + i * m.each;
      std::vector<T> work(from, from + m.each);
      for (const T& value : work) {
        if (std::isfinite(std::abs(value))) continue;
        return failure.note(i, -1);
      }
      failure.note(i, gesdd(kRowMajor,
                            !compute_uv     ? 'N'
                            : full_matrices ? 'A'
                                            : 'S',
                            m.rows, m.columns, work.data(), m.columns, s.as<Real<T>>() + i * k,
                            to_u, std::max(1, u_columns), to_vh, std::max(1, m.columns)));
    });
    TD_CHECK_AS(ErrorKind::kLinAlg, !failure.any() || failure.code() > 0,
                "{}The algorithm failed to converge because the input matrix contained "
                "non-finite values.",
                failure.where("linalg.svd", a.ndim() > 2));
    TD_CHECK_AS(ErrorKind::kLinAlg, !failure.any(),
                "{}The algorithm failed to converge because the input matrix is ill-conditioned "
                "or has too many repeated singular values (error code: {}).",
                failure.where("linalg.svd", a.ndim() > 2), failure.code());
  });
}

// A = V diag(w) V^H for a Hermitian A, of which one triangle is read; w ascends. An empty V is not
// computed.
void lapack_eigh(const View& values, const View& vectors, const View& a, bool upper,
                 bool compute_v) {
  for_lapack_type(a, [&]<class T>(T) {
    using Eigh = int(int, char, char, int, T*, int, Real<T>*);
    static auto* const eigh = lapacke_for<T, Eigh>(kComplexLapack<T> ? "heevd" : "syevd");
    const Matrices m(a);
    FirstFailure failure;
    over_batch(m.count, m.rows, [&](int64_t i) {
      if (m.each == 0) return;
      const T* const from = a.as<T>() + i * m.each;
      std::vector<T> work(from, from + m.each);
      failure.note(i, eigh(kRowMajor, compute_v ? 'V' : 'N', upper ? 'U' : 'L', m.rows, work.data(),
                           m.rows, values.as<Real<T>>() + i * m.rows));
      if (compute_v) copy_elements(vectors.as<T>() + i * m.each, work.data(), m.each);
    });
    TD_CHECK_AS(ErrorKind::kLinAlg, !failure.any(),
                "{}The algorithm failed to converge because the input matrix is ill-conditioned "
                "or has too many repeated eigenvalues (error code: {}).",
                failure.where("linalg.eigh", a.ndim() > 2), failure.code());
  });
}

namespace {

template <class T>
int geev(const std::complex<T>* a, int n, std::complex<T>* values, std::complex<T>* vectors) {
  using C = std::complex<T>;
  using Geev = int(int, char, char, int, C*, int, C*, C*, int, C*, int);
  static auto* const f = lapacke_for<C, Geev>("geev");
  std::vector<C> work(a, a + int64_t{n} * n);
  return f(kRowMajor, 'N', vectors ? 'V' : 'N', n, work.data(), n, values, nullptr, n, vectors, n);
}

// Real matrices: LAPACK gives a conjugate pair of vectors as its real and its imaginary part.
template <class T>
int geev(const T* a, int n, std::complex<T>* values, std::complex<T>* vectors) {
  using Geev = int(int, char, char, int, T*, int, T*, T*, T*, int, T*, int);
  static auto* const f = lapacke_for<T, Geev>("geev");
  const size_t size = static_cast<size_t>(n);
  std::vector<T> work(a, a + size * size), real(size), imaginary(size),
      right(vectors ? size * size : 0);
  const int status = f(kRowMajor, 'N', vectors ? 'V' : 'N', n, work.data(), n, real.data(),
                       imaginary.data(), nullptr, n, right.data(), n);
  for (size_t j = 0; j < size; j++) values[j] = {real[j], imaginary[j]};
  if (!vectors) return status;
  for (size_t j = 0; j < size; j++) {
    const bool pair = imaginary[j] != 0 && j + 1 < size;
    for (size_t row = 0; row < size; row++) {
      const T x = right[row * size + j], y = pair ? right[row * size + j + 1] : T();
      vectors[row * size + j] = {x, y};
      if (pair) vectors[row * size + j + 1] = {x, -y};
    }
    j += pair;
  }
  return status;
}

}  // namespace

// A V = V diag(w), in complex numbers. An empty V is not computed.
void lapack_eig(const View& values, const View& vectors, const View& a, bool compute_v) {
  for_lapack_type(a, [&]<class T>(T) {
    using C = std::complex<Real<T>>;
    const Matrices m(a);
    FirstFailure failure;
    over_batch(m.count, m.rows, [&](int64_t i) {
      if (m.each == 0) return;
      const T* const from = a.as<T>() + i * m.each;
      for (int64_t j = 0; j < m.each; j++)
        if (!std::isfinite(std::abs(from[j]))) return failure.note(i, -1);
      failure.note(i, geev(from, m.rows, values.as<C>() + i * m.rows,
                           compute_v ? vectors.as<C>() + i * m.each : nullptr));
    });
    TD_CHECK(!failure.any() || failure.code() > 0,
             "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    TD_CHECK_AS(ErrorKind::kLinAlg, !failure.any(),
                "{}The algorithm failed to converge because the input matrix is ill-conditioned "
                "or has too many repeated eigenvalues (error code: {}).",
                failure.where("linalg.eig", a.ndim() > 2), failure.code());
  });
}

}  // namespace taeda::cpu
