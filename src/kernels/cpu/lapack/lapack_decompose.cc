// Decompositions: QR, SVD, eigenvalues. All arguments have one batch shape.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/lapack/qr_routines.h"
#include "kernels/cpu/lapack/small_eigh.h"
#include "kernels/cpu/lapack/small_svd.h"

namespace taeda::cpu {

// A = Q R. Q's columns: min(m, n), or m for the complete Q; an empty Q is not computed.
void lapack_qr(const View& q, const View& r, const View& a, int64_t /*q_columns*/,
               int64_t /*r_rows*/) {
  for_lapack_type(a, [&]<class T>(T) {
    static const QrRoutines<T> routines;
    const Matrices m(a), upper(r);
    const bool with_q = q.ndim() >= 2;
    const int k = std::min(m.rows, m.columns);
    const int q_columns = with_q ? static_cast<int>(q.sizes[q.sizes.size() - 1]) : 0;
    over_batch(m.count, std::max(m.rows, m.columns), [&](int64_t i) {
      // room for A and for Q, whose columns overwrite A's
      const ColumnMajor<T> x(m.rows, std::max(m.columns, q_columns));
      const Scratch<T> tau(k);
      x.load(m, a, i);
      if (k > 0) routines.factor(x, m.rows, m.columns, tau);
      T* const triangle = r.as<T>() + i * upper.each;
      for (int c = 0; c < upper.columns; c++)
        for (int row = 0; row < upper.rows; row++)
          triangle[int64_t{c} * upper.rows + row] = c < row ? T() : x(row, c);

      if (!with_q || q_columns == 0) return;
      if (k == 0) {  // nothing to reflect: Q is the identity
        for (int row = 0; row < m.rows; row++)
          for (int c = 0; c < q_columns; c++) x(row, c) = T(row == c);
      } else {
        routines.form_q(x, m.rows, q_columns, k, tau);
      }
      x.store(q, q_columns, i);
    });
  });
}

namespace {

// gesdd of one matrix; complex ones need a workspace of reals beside the others.
template <class T>
int gesdd(char job, const ColumnMajor<T>& a, int rows, int columns, const Scratch<Real<T>>& s,
          const ColumnMajor<T>& u, const ColumnMajor<T>& vh, std::atomic<int>& length) {
  using R = Real<T>;
  const int k = std::min(rows, columns), lda = a.rows(), ldu = u.rows(), ldvh = vh.rows();
  const Scratch<int> iwork(int64_t{8} * k);
  const int64_t least = k, most = std::max(rows, columns);
  const int64_t reals =
      job == 'N' ? 7 * least : least * std::max(5 * least + 7, 2 * most + 2 * least + 1);
  const Scratch<R> rwork(kComplexLapack<T> ? reals : 0);
  const auto call = [=](T* work, int size) {
    int info = 0;
    if constexpr (kComplexLapack<T>) {
      using F = void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                     const int*, T*, const int*, R*, int*, int*, StringLength);
      static auto* const f = lapack_for<T, F>("gesdd");
      f(&job, &rows, &columns, a.data(), &lda, s.data(), u.data(), &ldu, vh.data(), &ldvh, work,
        &size, rwork.data(), iwork.data(), &info, 1);
    } else {
      using F = void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                     const int*, T*, const int*, int*, int*, StringLength);
      static auto* const f = lapack_for<T, F>("gesdd");
      f(&job, &rows, &columns, a.data(), &lda, s.data(), u.data(), &ldu, vh.data(), &ldvh, work,
        &size, iwork.data(), &info, 1);
    }
    return info;
  };
  const double elements = 1.0 * static_cast<double>(most) * (job == 'A' ? most : least);
  return lapack_call_with_workspace<T>(
      {(job == 'N' ? 3.0 : 10.0) * elements * k, int64_t{3} * static_cast<int64_t>(elements)}, call,
      &length);
}

}  // namespace

// A = U diag(S) Vh. An empty U and Vh are not computed.
void lapack_svd(const View& u, const View& s, const View& vh, const View& a, bool full_matrices,
                bool compute_uv) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a);
    const int k = std::min(m.rows, m.columns);
    const int u_columns = full_matrices ? m.rows : k, vh_rows = full_matrices ? m.columns : k;
    FirstFailure failure;
    std::atomic<int> length{0};
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
      if (!all_finite(from, m.each)) return failure.note(i, -1);
      if constexpr (!kComplexLapack<T>)
        if (!compute_uv && std::max(m.rows, m.columns) <= kSmallSvd &&
            small_singular_values(from, m.by_columns ? m.columns : m.rows,
                                  m.by_columns ? m.rows : m.columns, s.as<T>() + i * k))
          return;
      const Scratch<Real<T>> values(k);
      const ColumnMajor<T> x(m.rows, m.columns), u_columnwise(compute_uv ? m.rows : 0, u_columns),
          vh_columnwise(compute_uv ? vh_rows : 0, m.columns);
      x.load(m, a, i);
      failure.note(i, gesdd(!compute_uv     ? 'N'
                            : full_matrices ? 'A'
                                            : 'S',
                            x, m.rows, m.columns, values, u_columnwise, vh_columnwise, length));
      copy_elements(s.as<Real<T>>() + i * k, values.data(), k);
      if (!compute_uv) return;
      u_columnwise.store(u, u_columns, i);
      vh_columnwise.store(vh, m.columns, i);
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

namespace {

// syevd (heevd of complex matrices): eigenvalues of the triangle, vectors in its place.
template <class T>
int eigh(char job, char triangle, const ColumnMajor<T>& a, int n, const Scratch<Real<T>>& values) {
  using R = Real<T>;
  struct Lengths {
    int work = -1, rwork = -1, iwork = -1;
  };
  const auto call = [=, lda = a.rows()](T* work, [[maybe_unused]] R* rwork, int* iwork,
                                        const Lengths& length) {
    int info = 0;
    if constexpr (kComplexLapack<T>) {
      using F = void(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*,
                     const int*, int*, const int*, int*, StringLength, StringLength);
      static auto* const f = lapack_for<T, F>("heevd");
      f(&job, &triangle, &n, a.data(), &lda, values.data(), work, &length.work, rwork,
        &length.rwork, iwork, &length.iwork, &info, 1, 1);
    } else {
      using F = void(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, int*,
                     const int*, int*, StringLength, StringLength);
      static auto* const f = lapack_for<T, F>("syevd");
      f(&job, &triangle, &n, a.data(), &lda, values.data(), work, &length.work, iwork,
        &length.iwork, &info, 1, 1);
    }
    return info;
  };
  T answer{};
  R real_answer{};
  int integer_answer = 0;
  {
    const OpenBlasCall in_openblas;
    call(&answer, &real_answer, &integer_answer, {});
  }
  const Lengths length{workspace_length(answer), workspace_length(real_answer),
                       std::max(1, integer_answer)};
  const Scratch<T> work(length.work);
  const Scratch<R> rwork(length.rwork);
  const Scratch<int> iwork(length.iwork);
  return lapack_call<T>({(job == 'N' ? 2.0 : 5.0) * n * n * n, a.numel() + length.work},
                        [=] { return call(work.data(), rwork.data(), iwork.data(), length); });
}

}  // namespace

// A = V diag(w) V^H for a Hermitian A, of which one triangle is read; w ascends. An empty V is not
// computed.
void lapack_eigh(const View& values, const View& vectors, const View& a, bool upper,
                 bool compute_v) {
  for_lapack_type(a, [&]<class T>(T) {
    const Matrices m(a);
    FirstFailure failure;
    over_batch(m.count, m.rows, [&](int64_t i) {
      if (m.each == 0) return;
      if constexpr (!kComplexLapack<T>)
        if (m.rows <= kSmallEigh && small_eigh(a.as<T>() + i * m.each, m.rows,
                                               upper == m.by_columns, values.as<T>() + i * m.rows,
                                               compute_v ? vectors.as<T>() + i * m.each : nullptr))
          return;
      const ColumnMajor<T> x(m.rows, m.rows);
      x.load(m, a, i);
      const Scratch<Real<T>> ascending(m.rows);
      failure.note(i, eigh(compute_v ? 'V' : 'N', upper ? 'U' : 'L', x, m.rows, ascending));
      copy_elements(values.as<Real<T>>() + i * m.rows, ascending.data(), m.rows);
      if (compute_v) x.store(vectors, m.rows, i);
    });
    TD_CHECK_AS(ErrorKind::kLinAlg, !failure.any(),
                "{}The algorithm failed to converge because the input matrix is ill-conditioned "
                "or has too many repeated eigenvalues (error code: {}).",
                failure.where("linalg.eigh", a.ndim() > 2), failure.code());
  });
}

namespace {

// What the eigenvalues of a matrix that is not symmetric take, and their vectors.
LapackCost geev_cost(int n, bool vectors) {
  return {(vectors ? 25.0 : 10.0) * n * n * n, int64_t{vectors ? 2 : 1} * n * n};
}

template <class T>
int geev(const ColumnMajor<std::complex<T>>& x, int n, std::complex<T>* values,
         std::complex<T>* vectors, std::atomic<int>& length) {
  using C = std::complex<T>;
  using F = void(const char*, const char*, const int*, C*, const int*, C*, C*, const int*, C*,
                 const int*, C*, const int*, T*, int*, StringLength, StringLength);
  static auto* const f = lapack_for<C, F>("geev");
  const char left = 'N', right = vectors ? 'V' : 'N';
  const ColumnMajor<C> v(vectors ? n : 0, n);
  const Scratch<T> rwork(int64_t{2} * n);
  const Scratch<C> found(n);
  const auto call = [=](C* work, int size) {
    int info = 0;
    f(&left, &right, &n, x.data(), &n, found.data(), nullptr, &n, v.data(), &n, work, &size,
      rwork.data(), &info, 1, 1);
    return info;
  };
  const int status = lapack_call_with_workspace<C>(geev_cost(n, vectors != nullptr), call, &length);
  copy_elements(values, found.data(), n);
  if (vectors) copy_elements(vectors, v.data(), v.numel());
  return status;
}

// Real matrices: LAPACK gives a conjugate pair of vectors as its real and its imaginary part.
template <class T>
int geev(const ColumnMajor<T>& x, int n, std::complex<T>* values, std::complex<T>* vectors,
         std::atomic<int>& length) {
  using F = void(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*,
                 const int*, T*, const int*, int*, StringLength, StringLength);
  static auto* const f = lapack_for<T, F>("geev");
  const char left = 'N', right = vectors ? 'V' : 'N';
  const ColumnMajor<T> v(vectors ? n : 0, n);
  const Scratch<T> real(n), imaginary(n);
  const auto call = [=](T* work, int size) {
    int info = 0;
    f(&left, &right, &n, x.data(), &n, real.data(), imaginary.data(), nullptr, &n, v.data(), &n,
      work, &size, &info, 1, 1);
    return info;
  };
  const int status = lapack_call_with_workspace<T>(geev_cost(n, vectors != nullptr), call, &length);
  for (int j = 0; j < n; j++) values[j] = {real[j], imaginary[j]};
  if (!vectors) return status;
  for (int j = 0; j < n; j++) {
    const bool pair = imaginary[j] != 0 && j + 1 < n;
    std::complex<T>* const column = vectors + int64_t{j} * n;
    for (int row = 0; row < n; row++) {
      const T re = v(row, j), im = pair ? v(row, j + 1) : T();
      column[row] = {re, im};
      if (pair) column[n + row] = {re, -im};
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
    std::atomic<int> length{0};
    over_batch(m.count, m.rows, [&](int64_t i) {
      if (m.each == 0) return;
      if (!all_finite(a.as<T>() + i * m.each, m.each)) return failure.note(i, -1);
      const ColumnMajor<T> x(m.rows, m.rows);
      x.load(m, a, i);
      failure.note(i, geev(x, m.rows, values.as<C>() + i * m.rows,
                           compute_v ? vectors.as<C>() + i * m.each : nullptr, length));
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
