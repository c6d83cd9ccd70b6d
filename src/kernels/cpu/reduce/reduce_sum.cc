// sum, mean, nansum, prod, count_nonzero, any, all.
//
// Blocks of float are added in float lanes and then in double; blocks of double are added with a
// running compensation (Neumaier): the error does not grow with the length. Integers wrap modulo
// 2^64.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pointwise/flags.h"
#include "kernels/cpu/reduce/reducers-inl.h"
#include "kernels/cpu/rows/rows.h"

namespace taeda::cpu {
namespace {

template <class A>
struct Plain {
  A value;
  void add(const A& x) { value += x; }
  void add(const Plain& other) { value += other.value; }
  A total() const { return value; }
};
struct Wrapping {  // int64
  uint64_t value;
  void add(int64_t x) { value += static_cast<uint64_t>(x); }
  void add(const Wrapping& other) { value += other.value; }
  int64_t total() const { return static_cast<int64_t>(value); }
};
struct Compensated {  // double
  double sum, error;
  void add(double x) {
    const double t = sum + x;
    const double e = std::abs(sum) >= std::abs(x) ? (sum - t) + x : (x - t) + sum;
    sum = t;
    if (std::isfinite(e)) error += e;
  }
  void add(const Compensated& other) {
    add(other.sum);
    error += other.error;
  }
  double total() const { return sum + error; }
};

template <class T_, bool kSkipNaN>
struct Sum {
  using T = T_;
  using State =
      std::conditional_t<std::is_same_v<T, float>, Plain<double>,
                         std::conditional_t<std::is_same_v<T, double>, Compensated,
                                            std::conditional_t<std::is_same_v<T, int64_t>, Wrapping,
                                                               Plain<std::complex<double>>>>>;
  static State identity() { return State{}; }
  static void accumulate(State& s, const T& x) {
    if constexpr (kSkipNaN) {
      if (x != x) return;
    }
    if constexpr (is_complex(kDTypeOf<T>))
      s.add(std::complex<double>(x));
    else
      s.add(x);
  }
  static void combine(State& s, const State& other) { s.add(other); }
};

template <class T, class State>
T total_of(const State& s, int64_t, const void*) {
  return static_cast<T>(s.total());
}
template <class T, class State>
T mean_of(const State& s, int64_t count, const void*) {
  using A = decltype(s.total());
  if constexpr (is_complex(kDTypeOf<T>))
    return static_cast<T>(s.total() / static_cast<double>(count));
  else
    return static_cast<T>(s.total() / static_cast<A>(count));
}

template <class T, class State, bool kSkipNaN>
void sum_row(void* state, const void* x, int64_t n, int64_t) {
  auto* const sum = kSkipNaN ? row_table<T>().nansum : row_table<T>().sum;
  static_cast<State*>(state)->add(sum(static_cast<const T*>(x), n));
}
template <class T, class State>
void sum_columns(void* states, const void* x, int64_t n, int64_t rows, int64_t stride, int64_t) {
  if constexpr (std::is_same_v<State, Plain<double>>) {
    static_assert(sizeof(State) == sizeof(double));
    row_table<T>().add_columns(&static_cast<State*>(states)->value, static_cast<const T*>(x), n,
                               rows, stride);
  } else {
    T block[kReduceTile];
    row_table<T>().sum_columns(block, static_cast<const T*>(x), n, rows, stride);
    for (int64_t j = 0; j < n; j++) static_cast<State*>(states)[j].add(block[j]);
  }
}

// The same of numbers among which 0 stands for NaN, a block at a time.
template <class T>
[[gnu::optimize("O3")]] void copy_numbers(T* to, const T* x, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) to[i] = x[i] == x[i] ? x[i] : T(0);
}
template <class T, class State>
void nansum_columns(void* states, const void* x, int64_t n, int64_t rows, int64_t stride, int64_t) {
  T block[kReduceTile];
  for (int64_t i = 0; i < rows; i++) {
    copy_numbers(block, static_cast<const T*>(x) + i * stride, n);
    sum_columns<T, State>(states, block, n, 1, n, 0);
  }
}

// Complex numbers are columns of real and of imaginary parts.
template <class T>
void sum_complex_columns(void* states, const void* data, int64_t n, int64_t rows, int64_t stride,
                         int64_t) {
  static_assert(sizeof(Plain<std::complex<double>>) == 2 * sizeof(double));
  using R = typename T::value_type;
  row_table<R>().add_columns(static_cast<double*>(states), static_cast<const R*>(data), 2 * n, rows,
                             2 * stride);
}
template <class T>
void sum_complex_row(void* state, const void* data, int64_t n, int64_t) {
  constexpr int64_t kWidth = 32, kRows = 8;  // numbers side by side; added before in double
  Plain<std::complex<double>> sums[kWidth] = {};
  const T* const x = static_cast<const T*>(data);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kRows * kWidth)
    sum_complex_columns<T>(sums, x + i, kWidth, std::min(kRows, (n - i) / kWidth), kWidth, 0);
  for (int64_t k = n / kWidth * kWidth; k < n; k++) sums[0].add(std::complex<double>(x[k]));
  for (const auto& sum : sums) static_cast<Plain<std::complex<double>>*>(state)->add(sum);
}

// Sums of dense columns of f32: x as rows, added up in the order in which they lie in memory.
struct ColumnSums {
  const float* x;
  int64_t rows, n;

  static constexpr int64_t kBlock = 8192;             // columns whose sums stay in the cache
  static constexpr int64_t kRows = 64;                // added in float before the rest is in double
  static constexpr int64_t kPart = int64_t{1} << 16;  // elements that are worth a task
  static constexpr int64_t kMaxParts = 16;            // of the rows

  // Adds rows [begin, end) of some columns.
  void add(double* sums, int64_t column, int64_t width, int64_t begin, int64_t end) const {
    float block[kBlock];
    for (int64_t row = begin; row < end; row += kRows) {
      std::fill_n(block, width, 0.0f);
      row_table<float>().add_rows(block, x + row * n + column, width, std::min(kRows, end - row),
                                  n);
      row_table<float>().add_columns(sums, block, width, 1, width);
    }
  }
  void run(float* out, double divisor) const {
    const int64_t blocks = (n + kBlock - 1) / kBlock;
    const int64_t width = ((n + blocks - 1) / blocks + 15) / 16 * 16;
    const int64_t parts = std::clamp<int64_t>(rows * width / kPart, 1, kMaxParts);
    // Whole halves of kRows: few rows cost nearly as much as many.
    const int64_t length = ((rows + parts - 1) / parts + kRows / 2 - 1) / (kRows / 2) * (kRows / 2);
    std::vector<double> sums(static_cast<size_t>(parts * n));
    parallel_for(0, blocks * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t part = i % parts, column = i / parts * width;
        if (column < n)
          add(sums.data() + part * n + column, column, std::min(width, n - column), part * length,
              std::min(rows, (part + 1) * length));
      }
    });
    for (int64_t part = 1; part < parts; part++)
      row_table<double>().add(sums.data(), sums.data() + part * n, n);
    for (int64_t j = 0; j < n; j++)
      out[j] = static_cast<float>(sums[static_cast<size_t>(j)] / divisor);
  }
};

bool is_dense(const View& v) {
  int64_t stride = 1;
  for (int64_t d = v.ndim() - 1; d >= 0; d--) {
    const size_t i = static_cast<size_t>(d);
    if (v.sizes[i] != 1 && v.strides[i] != stride) return false;
    stride *= v.sizes[i];
  }
  return true;
}

// Sums over the leading dimensions, where they are long: read in 256 columns at a time, memory is
// not fetched ahead. False for all others.
bool sum_leading(const View& out, const View& self, const OptInts& dims, bool mean) {
  constexpr int64_t kFewColumns = 64, kMuch = int64_t{1} << 15;
  if (out.dtype != DType::kFloat32 || self.dtype != DType::kFloat32 || !dims || dims->empty() ||
      self.numel < kMuch || !is_dense(self) || !is_dense(out))
    return false;
  int64_t rows = 1, count = static_cast<int64_t>(dims->size());
  for (const int64_t d : *dims) {
    if (d >= count) return false;
    rows *= self.sizes[static_cast<size_t>(d)];
  }
  if (self.numel / rows < kFewColumns || rows < 2) return false;
  ColumnSums{self.as<float>(), rows, self.numel / rows}.run(out.as<float>(),
                                                            mean ? static_cast<double>(rows) : 1);
  return true;
}

template <bool kSkipNaN>
void sum_or_mean(const View& out, const View& self, const OptInts& dim, bool mean) {
  if (!kSkipNaN && sum_leading(out, self, dim, mean)) return;
  const DType compute = compute_type(out.dtype);
  const ReduceResult result{&out, compute};
  with_dtype<ComputeNumbers>(compute, [&]<class T>(T) {
    using P = Sum<T, kSkipNaN>;
    using State = typename P::State;
    Reducer reducer = PolicyReducer<P>::kReducer;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      reducer.row = sum_row<T, State, kSkipNaN>;
      reducer.columns = kSkipNaN ? nansum_columns<T, State> : sum_columns<T, State>;
    } else if constexpr (is_complex(kDTypeOf<T>)) {
      reducer.row = sum_complex_row<T>;
      reducer.columns = sum_complex_columns<T>;
    }
    reduce(reducer, self, dims_or_all(dim), {&result, 1},
           mean ? finalize_each<State, T, mean_of<T, State>>
                : finalize_each<State, T, total_of<T, State>>);
  });
}

template <class T_>
struct Product {
  using T = T_;
  using State = std::conditional_t<
      std::is_same_v<T, float>, double,
      std::conditional_t<
          std::is_same_v<T, int64_t>, uint64_t,
          std::conditional_t<std::is_same_v<T, std::complex<float>>, std::complex<double>, T>>>;
  static State identity() { return State(1); }
  static void accumulate(State& s, const T& x) { s *= static_cast<State>(x); }
  static void combine(State& s, const State& other) { s *= other; }
};
template <class T>
T product_of(const typename Product<T>::State& s, int64_t, const void*) {
  return static_cast<T>(s);
}

template <class E>
struct CountNonzero {
  using T = E;
  using State = int64_t;
  static State identity() { return 0; }
  static void accumulate(State& s, T x) { s += x != T(0); }
  static void combine(State& s, State other) { s += other; }
};
int64_t count_of(const int64_t& s, int64_t, const void*) { return s; }
void count_row(void* state, const void* data, int64_t n, int64_t) {
  *static_cast<int64_t*>(state) += count_true(static_cast<const Bool*>(data), n);
}
template <class T>
void count_numbers(void* state, const void* data, int64_t n, int64_t) {
  *static_cast<int64_t*>(state) += row_table<T>().count_nonzero(static_cast<const T*>(data), n);
}

// any: the first true decides; all is any of the negation.
template <bool kWanted>
struct Search {
  using State = uint8_t;  // nonzero: kWanted was seen
  static void init(void* states, int64_t n) { std::memset(states, 0, static_cast<size_t>(n)); }
  static void row(void* state, const void* x, int64_t n, int64_t) {
    uint8_t& seen = *static_cast<uint8_t*>(state);
    const auto* flags = static_cast<const Bool*>(x);
    if (!seen) seen = kWanted ? any_true(flags, n) : !all_true(flags, n);
  }
  [[gnu::optimize("O3")]] static void columns(void* states, const void* data, int64_t n,
                                              int64_t rows, int64_t stride, int64_t) {
    const uint8_t* x = static_cast<const uint8_t*>(data);
    uint8_t* s = static_cast<uint8_t*>(states);
    for (int64_t i = 0; i < rows; i++) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; j++)
        s[j] |= kWanted ? x[i * stride + j] : static_cast<uint8_t>(x[i * stride + j] == 0);
    }
  }
  static void combine(void* states, const void* others, int64_t n) {
    for (int64_t j = 0; j < n; j++)
      static_cast<uint8_t*>(states)[j] |= static_cast<const uint8_t*>(others)[j];
  }
  static bool result(const uint8_t& s, int64_t, const void*) { return (s != 0) == kWanted; }
};
template <bool kWanted>
void search(const View& out, const View& self, const OptInts& dim) {
  using S = Search<kWanted>;
  const Reducer reducer{DType::kBool, 1, S::init, S::row, S::columns, S::combine};
  const ReduceResult result{&out, DType::kBool};
  reduce(reducer, self, dims_or_all(dim), {&result, 1}, finalize_each<uint8_t, bool, S::result>);
}

}  // namespace

void sum(const View& out, const View& self, OptInts dim, bool, OptDType) {
  sum_or_mean<false>(out, self, dim, /*mean=*/false);
}
void mean(const View& out, const View& self, OptInts dim, bool, OptDType) {
  sum_or_mean<false>(out, self, dim, /*mean=*/true);
}
void nansum(const View& out, const View& self, OptInts dim, bool, OptDType) {
  if (is_floating(compute_type(out.dtype)))
    sum_or_mean<true>(out, self, dim, /*mean=*/false);
  else
    sum_or_mean<false>(out, self, dim, /*mean=*/false);
}

void prod(const View& out, const View& self, OptInts dim, bool, OptDType) {
  const DType compute = compute_type(out.dtype);
  const ReduceResult result{&out, compute};
  with_dtype<ComputeNumbers>(compute, [&]<class T>(T) {
    reduce(PolicyReducer<Product<T>>::kReducer, self, dims_or_all(dim), {&result, 1},
           finalize_each<typename Product<T>::State, T, product_of<T>>);
  });
}

void count_nonzero(const View& out, const View& self, OptInts dim) {
  const ReduceResult result{&out, DType::kInt64};
  const auto count = [&](Reducer reducer, auto* row) {
    reducer.row = row;
    reduce(reducer, self, dims_or_all(dim), {&result, 1},
           finalize_each<int64_t, int64_t, count_of>);
  };
  if (self.dtype == DType::kFloat32)  // others are converted to truth values first
    count(PolicyReducer<CountNonzero<float>>::kReducer, count_numbers<float>);
  else
    count(PolicyReducer<CountNonzero<Bool>>::kReducer, count_row);
}

void any(const View& out, const View& self, OptInts dim, bool) { search<true>(out, self, dim); }
void all(const View& out, const View& self, OptInts dim, bool) { search<false>(out, self, dim); }

}  // namespace taeda::cpu
