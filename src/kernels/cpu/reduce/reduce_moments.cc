// var, std, and mean with variance.
#include "core/with_dtype.h"
#include "kernels/cpu/reduce/reducers-inl.h"
#include "kernels/cpu/rows/moments.h"
#include "kernels/cpu/rows/rows.h"

namespace taeda::cpu {
namespace {

template <class T>
struct MomentsOf {
  static void init(void* states, int64_t n) {
    for (int64_t j = 0; j < n; j++) static_cast<Moments*>(states)[j] = {0, 0, 0};
  }
  static void row(void* state, const void* data, int64_t n, int64_t) {
    add_chunk(*static_cast<Moments*>(state), static_cast<const T*>(data), n);
  }
  static void columns(void* states, const void* data, int64_t n, int64_t rows, int64_t stride,
                      int64_t) {
    const T* x = static_cast<const T*>(data);
    const double count = static_cast<double>(rows);
    T center[kReduceTile], first[kReduceTile], second[kReduceTile];
    row_table<T>().sum_columns(center, x, n, rows, stride);
    for (int64_t j = 0; j < n; j++) center[j] /= static_cast<T>(rows);
    row_table<T>().moments_columns(first, second, x, center, n, rows, stride);
    for (int64_t j = 0; j < n; j++) {
      Moments& state = static_cast<Moments*>(states)[j];
      const double f = first[j];
      if (is_out_of_range(second[j]))
        add_wide(state, x + j, rows, stride);
      else
        combine_moments(state, count, center[j] + f / count, second[j] - f * f / count);
    }
  }
  static void combine(void* states, const void* others, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
      const Moments& o = static_cast<const Moments*>(others)[j];
      combine_moments(static_cast<Moments*>(states)[j], o.count, o.mean, o.m2);
    }
  }
  static constexpr Reducer kReducer{kDTypeOf<T>, sizeof(Moments), init, row, columns, combine};
};

struct Params {
  double correction;
  bool root;
};

template <class T>
void finalize(void* const* outs, const void* states, int64_t n, int64_t count, const void* params) {
  const Params& p = *static_cast<const Params*>(params);
  const double degrees = std::max(0.0, static_cast<double>(count) - p.correction);
  for (int64_t j = 0; j < n; j++) {
    const Moments& s = static_cast<const Moments*>(states)[j];
    double v = s.m2 / degrees;
    if (v < 0) v = 0;
    static_cast<T*>(outs[0])[j] = static_cast<T>(p.root ? std::sqrt(v) : v);
    if (outs[1])
      static_cast<T*>(outs[1])[j] =
          static_cast<T>(count ? s.mean : std::numeric_limits<double>::quiet_NaN());
  }
}

void moments(const View& out, const View* mean, const View& self, const OptInts& dim,
             const OptScalar& correction, bool root) {
  const Params params{correction ? correction->to_double() : 1.0, root};
  with_wide_floating(self.dtype, [&](auto zero) {
    using T = decltype(zero);
    const ReduceResult results[] = {{&out, kDTypeOf<T>}, {mean, kDTypeOf<T>}};
    reduce(MomentsOf<T>::kReducer, self, dims_or_all(dim), {results, mean ? 2u : 1u}, finalize<T>,
           &params);
  });
}

}  // namespace

void var(const View& out, const View& self, OptInts dim, const OptScalar& correction, bool) {
  moments(out, nullptr, self, dim, correction, false);
}
void stddev(const View& out, const View& self, OptInts dim, const OptScalar& correction, bool) {
  moments(out, nullptr, self, dim, correction, true);
}
void mean_and_variance(const View& mean, const View& variance, const View& x, IntSpan dims) {
  moments(variance, &mean, x, dims, Scalar(int64_t{0}), false);
}

}  // namespace taeda::cpu
