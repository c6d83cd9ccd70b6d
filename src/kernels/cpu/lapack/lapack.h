// LAPACK over batches of matrices: what lapack_solve.cc and lapack_decompose.cc share.
//
// Each matrix is one call on one thread; the pool splits the batch. Arguments are row- or
// column-major (Matrices), results column-major. The Fortran routines are
// called, on copies and with workspaces from the caching allocator: LAPACKE's take
// theirs from the C library, and where that has none say so on stderr and with a code that looks
// like a singular matrix. No routine is given memory of a tensor: a long call may outlive the
// operator that made it (lapack_call).
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>

#include "base/detached_call.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/gemm/blas.h"
#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cpu {

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

// The LAPACK routine for T by its name without the letter of its type: "getrf". F has Fortran's
// arguments: everything by address, and at the end the length of each string by value.
template <class T, class F>
F* lapack_for(const char* name) {
  return reinterpret_cast<F*>(lapack((lapack_letter<T>() + std::string(name)).c_str()));
}
using StringLength = size_t;

// The workspace's length that a routine asked for, in elements. Single precision may have rounded
// it down.
template <class T>
int workspace_length(T answer) {
  const double length = std::ceil(static_cast<double>(std::real(answer)) * (1 + 1e-6));
  TD_CHECK(
      length < std::numeric_limits<int>::max(),
      "LAPACK counts in 32 bits: it cannot work on a matrix that needs {} numbers of workspace",
      static_cast<int64_t>(length));
  return std::max(1, static_cast<int>(length));
}

// What a routine takes for numbers of type T, about: multiplications, and numbers that it holds.
struct LapackCost {
  double work;
  int64_t numbers;
};

// Calls a routine and returns its status. `call` holds by value what the routine uses, memory as
// Scratch: when the program interrupts a long call, that goes on without the operator.
template <class T, class F>
int lapack_call(const LapackCost& cost, F call) {
  constexpr double kLong = 2e8;  // some 10 ms, against which starting a thread does not count
  const auto guarded = [call = std::move(call)] {
    const OpenBlasCall in_openblas;
    return call();
  };
  if (cost.work * (kComplexLapack<T> ? 4 : 1) < kLong) return guarded();
  return call_detached(cost.numbers * static_cast<int64_t>(sizeof(T)), guarded);
}

// The same for a routine that takes a workspace: call(work, length), first to learn the length,
// which is kept in `known` for the matrices that follow: the question takes as long as a small
// matrix.
template <class T, class F>
int lapack_call_with_workspace(const LapackCost& cost, const F& call,
                               std::atomic<int>* known = nullptr) {
  int length = known ? known->load() : 0;
  if (length == 0) {
    T answer{};
    {
      const OpenBlasCall in_openblas;
      call(&answer, -1);
    }
    length = workspace_length(answer);
    if (known) known->store(length);
  }
  const Scratch<T> workspace(length);
  return lapack_call<T>({cost.work, cost.numbers + length},
                        [=] { return call(workspace.data(), length); });
}

// The same for a decomposition of this many columns. Asking for the length of the workspace takes
// as long as a small one, whose columns LAPACK does not block anyway.
constexpr int kUnblockedLapack = 32;
template <class T, class F>
int lapack_call_of_columns(const LapackCost& cost, int columns, const F& call) {
  constexpr int kLength = kUnblockedLapack * kUnblockedLapack;
  if (columns > kUnblockedLapack) return lapack_call_with_workspace<T>(cost, call);
  const Scratch<T> workspace(kLength);
  return lapack_call<T>(cost, [=] { return call(workspace.data(), kLength); });
}

// A batch of matrices without gaps, each row-major or column-major.
struct Matrices {
  explicit Matrices(const View& v)
      : rows(static_cast<int>(v.sizes[v.sizes.size() - 2])),
        columns(static_cast<int>(v.sizes[v.sizes.size() - 1])),
        each(int64_t{rows} * columns),
        count(1),
        by_columns(rows > 1 && columns > 1 && v.strides[v.sizes.size() - 1] != 1) {
    for (size_t i = 0; i + 2 < v.sizes.size(); i++) count *= v.sizes[i];
  }
  int rows, columns;
  int64_t each, count;
  bool by_columns;
};

template <class T>
void copy_elements(T* to, const T* from, int64_t n) {
  if (n > 0) std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
}

// A column-major matrix of these sizes from a row-major one.
template <class T>
void transpose_columns(T* to, T* from, int64_t rows, int64_t columns, DType dtype) {
  constexpr int64_t kSmall = 1024;  // below, the general copy's preparations cost more
  if (rows * columns > kSmall) {
    const int64_t sizes[] = {rows, columns}, by_rows[] = {columns, 1}, by_columns[] = {1, rows};
    const View source{from, dtype, {sizes, 2}, {by_rows, 2}, rows * columns, true};
    const View result{to, dtype, {sizes, 2}, {by_columns, 2}, rows * columns, true};
    return copy(result, source);
  }
  for (int64_t row = 0; row < rows; row++)
    for (int64_t column = 0; column < columns; column++)
      to[column * rows + row] = from[row * columns + column];
}

// Matrix i of a batch, column by column.
template <class T>
void copy_columns(T* to, const Matrices& m, const View& batch, int64_t i) {
  T* const from = batch.as<T>() + i * m.each;
  if (m.by_columns) return copy_elements(to, from, m.each);
  transpose_columns(to, from, m.rows, m.columns, batch.dtype);
}

// A rows x columns matrix as LAPACK takes it: column by column. Copies share their memory.
template <class T>
class ColumnMajor {
 public:
  ColumnMajor(int rows, int columns)
      : rows_(rows), numel_(int64_t{rows} * columns), elements_(numel_) {}
  T* data() const { return elements_.data(); }
  int rows() const { return std::max(1, rows_); }  // the leading dimension
  int64_t numel() const { return numel_; }
  T& operator()(int row, int column) const { return elements_[int64_t{column} * rows_ + row]; }

  // From matrix i of a batch of matrices with as many rows, which has the first columns.
  void load(const Matrices& m, const View& batch, int64_t i) const {
    copy_columns(data(), m, batch, i);
  }
  // The first columns, to matrix i of a batch of column-major ones.
  void store(const View& batch, int columns, int64_t i) const {
    const int64_t each = int64_t{rows_} * columns;
    copy_elements(batch.as<T>() + i * each, data(), each);
  }

 private:
  const int rows_;
  const int64_t numel_;
  const Scratch<T> elements_;
};

// f(T()) for the dtype of `x`, which the contract has restricted to these four.
template <class F>
void for_lapack_type(const View& x, const F& f) {
  with_dtype<WideInexact>(x.dtype, f);
}

// f(each) for chunks of a batch of matrices that cost about n^3: each(g) calls g(i) for the
// chunk's.
template <class F>
void over_batch_chunks(int64_t count, int64_t n, const F& f) {
  const int64_t work = std::max<int64_t>(1, n * n * n);
  parallel_for(0, count, std::max<int64_t>(1, (int64_t{1} << 18) / work),
               [&](int64_t begin, int64_t end) {
                 f([&](const auto& g) {
                   for (int64_t i = begin; i < end; i++) {
                     check_interrupt();
                     g(i);
                   }
                 });
               });
}

// f(i) for every matrix of a batch.
template <class F>
void over_batch(int64_t count, int64_t n, const F& f) {
  over_batch_chunks(count, n, [&](const auto& each) { each(f); });
}

// Whether no element is infinite or NaN.
template <class T>
bool all_finite(const T* x, int64_t n) {
  bool finite = true;
  in_slices(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && finite; i++) finite = std::isfinite(std::abs(x[i]));
  });
  return finite;
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
