// Scans along one dimension: cumsum, cumprod, cummax, cummin, logcumsumexp; gradients and tangents
// of the products and of logcumsumexp.
//
// A lane is one line of elements along the scanned dimension. Running values are kept in the
// compute type (float for half and bfloat16), those of float sums and products in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/rows/row_io.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/simd/stream.h"
#include "kernels/log_add_exp.h"
#include "kernels/optional.h"

// Vector code for lanes that lie side by side.
#pragma GCC optimize("O3")

namespace taeda::cpu {
namespace {

constexpr int64_t kBetweenLooks = 1 << 14;  // elements of a lane, for an interrupt

constexpr int64_t kWork = 1 << 14;
constexpr int64_t kBundle = 1024;

// The sizes and strides of lanes, for any number of views: one copy serves all loops.
class LaneLayout {
 public:
  int64_t length() const { return length_; }
  int64_t stride(size_t view) const { return stride_[view]; }

  // Whether neighbouring lanes are neighbours in the memory of every view.
  bool side_by_side() const {
    if (sizes_.empty() || length_ < 2) return false;
    for (size_t v = 0; v < views_; v++) {
      if (strides_[v].back() != 1) return false;
    }
    return true;
  }

 protected:
  static constexpr size_t kMaxViews = 4;
  [[gnu::noinline]] LaneLayout(const View* const* views, size_t count, int64_t dim)
      : views_(count) {
    const View& x = *views[0];
    for (int64_t d = 0; d < x.ndim(); d++) {
      const size_t i = static_cast<size_t>(d);
      if (d == dim) {
        length_ = x.sizes[i];
        for (size_t v = 0; v < count; v++) stride_[v] = views[v]->strides[i];
        continue;
      }
      sizes_.push_back(x.sizes[i]);
      count_ *= x.sizes[i];
      for (size_t v = 0; v < count; v++) strides_[v].push_back(views[v]->strides[i]);
    }
  }
  [[gnu::noinline]] ~LaneLayout() = default;

  size_t views_;
  DimVector sizes_, strides_[kMaxViews];
  int64_t stride_[kMaxViews] = {}, length_ = 1, count_ = 1;
};

// Lanes of the first view along `dim`, with the offsets of each lane's first element in several
// views of equal sizes.
template <size_t kViews>
class Lanes : public LaneLayout {
 public:
  static_assert(kViews <= kMaxViews);
  Lanes(const View* const (&views)[kViews], int64_t dim) : LaneLayout(views, kViews, dim) {}

  // f(offsets, n) for bundles of up to kBundle lanes that are side by side.
  template <class F>
  void each_bundle(const F& f) const {
    if (length_ == 0 || count_ == 0) return;
    const int64_t width = sizes_.back(), bundles = (width + kBundle - 1) / kBundle;
    const int64_t work = length_ * std::min(width, kBundle);
    parallel_for(0, count_ / width * bundles, std::max<int64_t>(1, kWork / work),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; b++) {
                     const int64_t first = b % bundles * kBundle;
                     int64_t offsets[kViews];
                     std::fill_n(offsets, kViews, first);
                     int64_t rest = b / bundles;
                     for (size_t i = sizes_.size() - 1; i-- > 0;) {
                       const int64_t k = rest % sizes_[i];
                       rest /= sizes_[i];
                       for (size_t v = 0; v < kViews; v++) offsets[v] += k * strides_[v][i];
                     }
                     f(offsets, std::min(kBundle, width - first));
                   }
                 });
  }

  // f(offsets) for every lane, in parallel.
  template <class F>
  void each(const F& f) const {
    if (length_ == 0 || count_ == 0) return;
    parallel_for(0, count_, std::max<int64_t>(1, kWork / length_), [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; l++) {
        int64_t offsets[kViews] = {};
        int64_t rest = l;
        for (size_t i = sizes_.size(); i-- > 0;) {
          const int64_t k = rest % sizes_[i];
          rest /= sizes_[i];
          for (size_t v = 0; v < kViews; v++) offsets[v] += k * strides_[v][i];
        }
        f(offsets);
      }
    });
  }
};

template <class T>
struct Add {
  T total{};
  T operator()(const T& x) {
    if constexpr (std::is_same_v<T, int64_t>)
      total = static_cast<T>(static_cast<uint64_t>(total) + static_cast<uint64_t>(x));
    else
      total += x;
    return total;
  }
};
template <>
struct Add<float> {  // accumulates in double: long scans stay exact to the last bit of float
  double total = 0;
  float operator()(float x) { return static_cast<float>(total += x); }
};
template <class T>
struct Multiply {
  T total{1};
  T operator()(const T& x) {
    if constexpr (std::is_same_v<T, int64_t>)
      total = static_cast<T>(static_cast<uint64_t>(total) * static_cast<uint64_t>(x));
    else
      total *= x;
    return total;
  }
};
template <>
struct Multiply<float> {
  double total = 1;
  float operator()(float x) { return static_cast<float>(total *= x); }
};
// Of floats the exponentials, less the largest one's logarithm, are added up in double: sums of
// float's precision even next to 1, and no step waits for the logarithm of the one before.
template <class T>
struct SumExponentials : LogAddExp<T> {};
template <>
struct SumExponentials<float> {
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float largest = -kInfinity, result = -kInfinity;
  double sum = 0;
  float operator()(float x) {
    if (x == -kInfinity) return result;
    if (x > largest) {
      sum = sum * std::exp(static_cast<double>(largest) - x) + 1;
      largest = x;
    } else if (largest < kInfinity || std::isnan(x)) {
      sum += std::exp(static_cast<double>(x) - largest);
    }
    return result = static_cast<float>(largest + std::log(sum));
  }
};

// Blocks of a lane pass through L1 in the compute type; lanes that lie side by side in memory are
// scanned together, a row of them at a time.
template <class T, template <class> class Op>
void scan(const View& out, const View& x, int64_t dim) {
  const Lanes<2> lanes({&out, &x}, dim);
  constexpr int64_t kBlock = 512;
  if (out.dtype == kDTypeOf<T> && x.dtype == kDTypeOf<T> && lanes.side_by_side()) {
    lanes.each_bundle([&](const int64_t* offset, int64_t n) {
      Op<T> ops[kBundle];
      for (int64_t i = 0; i < lanes.length(); i++) {
        if (i > 0 && i % kBetweenLooks == 0) check_interrupt();
        T* const y = out.as<T>() + offset[0] + i * lanes.stride(0);
        const T* const p = x.as<T>() + offset[1] + i * lanes.stride(1);
#pragma GCC ivdep
        for (int64_t j = 0; j < n; j++) y[j] = ops[j](p[j]);
      }
    });
    return;
  }
  lanes.each([&](const int64_t* offset) {
    Op<T> op;
    if (out.dtype == kDTypeOf<T> && x.dtype == kDTypeOf<T>) {
      T* y = out.as<T>() + offset[0];
      const T* p = x.as<T>() + offset[1];
      const int64_t ys = lanes.stride(0), xs = lanes.stride(1);
      in_slices(lanes.length(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) y[i * ys] = op(p[i * xs]);
      });
      return;
    }
    T block[kBlock];
    for (int64_t i = 0; i < lanes.length(); i += kBlock) {
      if (i > 0 && i % kBetweenLooks == 0) check_interrupt();
      const int64_t n = std::min(kBlock, lanes.length() - i);
      convert_summand(block, kDTypeOf<T>, 1, at(x, offset[1] + i * lanes.stride(1)), x.dtype,
                      lanes.stride(1), n, out.dtype);
      for (int64_t k = 0; k < n; k++) block[k] = op(block[k]);
      convert_row(at(out, offset[0] + i * lanes.stride(0)), out.dtype, lanes.stride(0), block,
                  kDTypeOf<T>, 1, n);
    }
  });
}

// Running sums of float or double by vectors, where the scanned dimension or the one beside it is
// dense in both views. False for others.
template <class T>
bool scan_sums(const View& out, const View& x, int64_t dim) {
  if (out.dtype != kDTypeOf<T> || x.dtype != kDTypeOf<T>) return false;
  const Lanes<2> lanes({&out, &x}, dim);
  const int64_t item = sizeof(T);
  const bool streamed = out.data != x.data && worth_streaming(2 * x.numel * item) &&
                        (lanes.stride(0) != 1 || lanes.length() * item >= kStreamedChunk);
  constexpr int64_t kBlock = kStreamBytes / sizeof(T);
  // f(block, i, n) computes n elements from i on.
  const auto in_blocks = [=](T* y, int64_t n, StreamFence& fence, const auto& f) {
    if (!streamed) return f(y, int64_t{0}, n);
    alignas(64) T block[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      if (i > 0 && i % kBetweenLooks == 0) check_interrupt();
      const int64_t m = std::min(kBlock, n - i);
      f(block, i, m);
      stream(y + i, block, m * static_cast<int64_t>(sizeof(T)));
    }
    fence.pending = true;
  };
  const RowTable<T>& t = row_table<T>();
  if (lanes.stride(0) == 1 && lanes.stride(1) == 1) {
    lanes.each([&](const int64_t* offset) {
      StreamFence fence;
      double total = 0;
      const T* const p = x.as<T>() + offset[1];
      in_blocks(out.as<T>() + offset[0], lanes.length(), fence,
                [&](T* y, int64_t i, int64_t n) { total = t.scan(y, p + i, total, n); });
    });
    return true;
  }
  if (!lanes.side_by_side()) return false;
  lanes.each_bundle([&](const int64_t* offset, int64_t width) {
    StreamFence fence;
    double totals[kBundle] = {};
    for (int64_t row = 0; row < lanes.length(); row++) {
      if (row > 0 && row % kBetweenLooks == 0) check_interrupt();
      const T* const p = x.as<T>() + offset[1] + row * lanes.stride(1);
      in_blocks(out.as<T>() + offset[0] + row * lanes.stride(0), width, fence,
                [&](T* y, int64_t i, int64_t n) {
                  for (int64_t k = 0; k < n; k += 16)
                    __builtin_prefetch(p + lanes.stride(1) + i + k);
                  t.scan_columns(y, p + i, totals + i, n);
                });
    }
  });
  return true;
}

template <template <class> class Op>
void scan_numbers(const View& out, const View& x, int64_t dim) {
  with_dtype<ComputeNumbers>(compute_type(out.dtype),
                             [&]<class T>(T) { scan<T, Op>(out, x, dim); });
}

// The largest or the smallest so far, and where it was last; of NaN, which wins, the last one.
template <class T, bool kMax>
struct Extreme {
  T best{};
  int64_t index = -1;
  static bool is_beaten(T v, T best) { return kMax ? v < best : v > best; }
  // Whether v, which `best` does not beat, takes its place.
  static bool takes_place(T v, T best) { return best == best || v != v; }

  // n elements from number `first` on. Where none of a few takes the place of the best, which is
  // the rule, they are found at once; else some more are looked at one by one.
  void scan(T* values, int64_t* indices, const T* x, int64_t first, int64_t n) {
    constexpr int64_t kFew = 16, kMore = 128;
    if (index < 0) best = x[0], index = first;
    int64_t i = 0;
    while (i + kFew <= n) {
      int beaten = 0;
      for (int64_t k = 0; k < kFew; k++) beaten += is_beaten(x[i + k], best);
      if (beaten < kFew) {
        const int64_t end = std::min(n, i + kMore);
        one_by_one(values, indices, x, first, i, end);
        i = end;
        continue;
      }
      std::fill_n(values + i, kFew, best);
      std::fill_n(indices + i, kFew, index);
      i += kFew;
    }
    one_by_one(values, indices, x, first, i, n);
  }

 private:
  void one_by_one(T* values, int64_t* indices, const T* x, int64_t first, int64_t i, int64_t end) {
    for (; i < end; i++) {
      if (!is_beaten(x[i], best) && takes_place(x[i], best)) best = x[i], index = first + i;
      values[i] = best;
      indices[i] = index;
    }
  }
};

// Lanes side by side: a row of all of them at a time.
template <class T, bool kMax>
void scan_extremes(const View& values, const View& indices, const View& x, const Lanes<3>& lanes) {
  using E = Extreme<T, kMax>;
  lanes.each_bundle([&](const int64_t* offset, int64_t n) {
    T best[kBundle];
    int64_t index[kBundle] = {};
    std::copy_n(x.as<T>() + offset[2], n, best);
    for (int64_t i = 0; i < lanes.length(); i++) {
      if (i > 0 && i % kBetweenLooks == 0) check_interrupt();
      const T* const p = x.as<T>() + offset[2] + i * lanes.stride(2);
      for (int64_t j = 0; j < n; j++) {
        const T v = p[j], b = best[j];
        const bool later = !E::is_beaten(v, b) & E::takes_place(v, b);
        best[j] = later ? v : b;
        index[j] = later ? i : index[j];
      }
      std::copy_n(best, n, values.as<T>() + offset[0] + i * lanes.stride(0));
      std::copy_n(index, n, indices.as<int64_t>() + offset[1] + i * lanes.stride(1));
    }
  });
}

template <class T, bool kMax>
void scan_extreme(const View& values, const View& indices, const View& x, int64_t dim) {
  const Lanes<3> lanes({&values, &indices, &x}, dim);
  constexpr int64_t kBlock = 512;
  const bool same = x.dtype == kDTypeOf<T> && values.dtype == x.dtype;
  const bool dense = lanes.stride(0) == 1 && lanes.stride(1) == 1 && lanes.stride(2) == 1;
  if (same && !dense && lanes.side_by_side())
    return scan_extremes<T, kMax>(values, indices, x, lanes);
  lanes.each([&](const int64_t* offset) {
    Extreme<T, kMax> extreme;
    if (same && dense)
      return in_slices(lanes.length(), [&](int64_t begin, int64_t end) {
        extreme.scan(values.as<T>() + offset[0] + begin, indices.as<int64_t>() + offset[1] + begin,
                     x.as<T>() + offset[2] + begin, begin, end - begin);
      });
    T block[kBlock];
    int64_t found[kBlock];
    for (int64_t i = 0; i < lanes.length(); i += kBlock) {
      if (i > 0 && i % kBetweenLooks == 0) check_interrupt();
      const int64_t n = std::min(kBlock, lanes.length() - i);
      convert_row(block, kDTypeOf<T>, 1, at(x, offset[2] + i * lanes.stride(2)), x.dtype,
                  lanes.stride(2), n);
      extreme.scan(block, found, block, i, n);
      convert_row(at(values, offset[0] + i * lanes.stride(0)), values.dtype, lanes.stride(0), block,
                  kDTypeOf<T>, 1, n);
      convert_row(at(indices, offset[1] + i * lanes.stride(1)), DType::kInt64, lanes.stride(1),
                  found, DType::kInt64, 1, n);
    }
  });
}
template <bool kMax>
void scan_extreme(const View& values, const View& indices, const View& x, int64_t dim) {
  with_dtype<Join<Types<int64_t>, WideFloating>>(
      compute_type(x.dtype), [&]<class T>(T) { scan_extreme<T, kMax>(values, indices, x, dim); });
}

// f(n, lane) for every lane: lane[0] is written, lane[1] ... are copies of the others' n elements,
// all in T.
template <class T, class F, class... Inputs>
void map_lanes(int64_t dim, const F& f, const View& out, const Inputs&... inputs) {
  constexpr size_t kViews = 1 + sizeof...(inputs);
  const View* const views[kViews] = {&out, &inputs...};
  const Lanes<kViews> lanes(views, dim);
  const int64_t n = lanes.length();
  lanes.each([&](const int64_t* offset) {
    std::vector<T> copies(kViews * static_cast<size_t>(n));
    T* lane[kViews];
    for (size_t v = 0; v < kViews; v++) lane[v] = copies.data() + v * static_cast<size_t>(n);
    for (size_t v = 1; v < kViews; v++) {
      convert_row(lane[v], kDTypeOf<T>, 1, at(*views[v], offset[v]), views[v]->dtype,
                  lanes.stride(v), n);
    }
    f(n, lane);
    convert_row(at(out, offset[0]), out.dtype, lanes.stride(0), lane[0], kDTypeOf<T>, 1, n);
  });
}

// gx_k = before_k after_k, with before_k = prod_{j<k} x_j and after_k = gy_k + x_{k+1} after_{k+1};
// complex x conjugated.
template <class T>
void cumprod_gradient(const View& gx, const View& gy, const View& x, int64_t dim) {
  const auto gradient = [](int64_t n, T* const* lane) {
    T *const o = lane[0], *const g = lane[1], *const v = lane[2];
    if constexpr (is_complex(kDTypeOf<T>)) {
      for (int64_t k = 0; k < n; k++) v[k] = std::conj(v[k]);
    }
    T after(0);
    for (int64_t k = n; k-- > 0;) o[k] = after = g[k] + (k + 1 < n ? v[k + 1] * after : T(0));
    T before(1);
    for (int64_t k = 0; k < n; k++) {
      o[k] *= before;
      before *= v[k];
    }
  };
  map_lanes<T>(dim, gradient, gx, gy, x);
}

// s_i = s_{i-1} x_i + t_i prod_{j<i} x_j
template <class T>
void cumprod_tangent(const View& out, const View& t, const View& x, int64_t dim) {
  const auto tangent = [](int64_t n, T* const* lane) {
    T before(1), sum(0);
    for (int64_t i = 0; i < n; i++) {
      lane[0][i] = sum = sum * lane[2][i] + lane[1][i] * before;
      before *= lane[2][i];
    }
  };
  map_lanes<T>(dim, tangent, out, t, x);
}

// exp(a - b), where equal infinities differ by 0.
template <class T>
T exp_difference(const T& a, const T& b) {
  return a == b ? T(1) : std::exp(a - b);
}

// The result y of logcumsumexp anew where half precision rounded it: exp() makes a factor of a
// rounding error, which of large y is more than 1.
template <class T>
void unround(bool rounded, int64_t n, const T* x, T* y) {
  LogAddExp<T> running;
  for (int64_t i = 0; rounded && i < n; i++) y[i] = running(x[i]);
}

// s_i = sum_{k <= i} t_k exp(x_k - y_i) = s_{i-1} exp(y_{i-1} - y_i) + t_i exp(x_i - y_i); no
// exponent of real numbers is positive, as y grows and lies above x.
template <class T>
void logcumsumexp_tangent(const View& out, const View& tangent, const View& self,
                          const View& output, int64_t dim) {
  const bool rounded = is_reduced_floating(output.dtype);
  const auto sums = [rounded](int64_t n, T* const* lane) {
    const T *const t = lane[1], *const x = lane[2], *const y = lane[3];
    unround(rounded, n, x, lane[3]);
    T s(0);
    for (int64_t i = 0; i < n; i++) {
      if (i > 0) s *= exp_difference(y[i - 1], y[i]);
      lane[0][i] = s += t[i] * exp_difference(x[i], y[i]);
    }
  };
  map_lanes<T>(dim, sums, out, tangent, self, output);
}

// gx_k = sum_{i >= k} gy_i exp(x_k - y_i)*, likewise from the end.
template <class T>
void logcumsumexp_gradient(const View& out, const View& gy, const View& self, const View& output,
                           int64_t dim) {
  const bool rounded = is_reduced_floating(output.dtype);
  const auto sums = [rounded](int64_t n, T* const* lane) {
    const T *const g = lane[1], *const x = lane[2], *const y = lane[3];
    unround(rounded, n, x, lane[3]);
    const auto conjugate = [](const T& z) {
      if constexpr (is_complex(kDTypeOf<T>))
        return std::conj(z);
      else
        return z;
    };
    T s(0);
    for (int64_t k = n; k-- > 0;) {
      if (k + 1 < n) s *= conjugate(exp_difference(y[k], y[k + 1]));
      s += g[k];
      lane[0][k] = s * conjugate(exp_difference(x[k], y[k]));
    }
  };
  map_lanes<T>(dim, sums, out, gy, self, output);
}

}  // namespace

void cumsum(const View& out, const View& self, int64_t dim, OptDType) {
  if (scan_sums<float>(out, self, dim) || scan_sums<double>(out, self, dim)) return;
  scan_numbers<Add>(out, self, dim);
}
void cumprod(const View& out, const View& self, int64_t dim, OptDType) {
  scan_numbers<Multiply>(out, self, dim);
}
void logcumsumexp(const View& out, const View& self, int64_t dim) {
  with_dtype<WideInexact>(compute_type(self.dtype),
                          [&]<class T>(T) { scan<T, SumExponentials>(out, self, dim); });
}
void cummax(const View& values, const View& indices, const View& self, int64_t dim) {
  scan_extreme<true>(values, indices, self, dim);
}
void cummin(const View& values, const View& indices, const View& self, int64_t dim) {
  scan_extreme<false>(values, indices, self, dim);
}

void cumprod_backward(const View& out, const View& gy, const View& self, const View&, int64_t dim) {
  with_dtype<WideInexact>(compute_type(self.dtype),
                          [&]<class T>(T) { cumprod_gradient<T>(out, gy, self, dim); });
}
void cumprod_jvp(const View& out, const View& tangent, const View& self, int64_t dim) {
  with_dtype<WideInexact>(compute_type(self.dtype),
                          [&]<class T>(T) { cumprod_tangent<T>(out, tangent, self, dim); });
}

void logcumsumexp_jvp(const View& out, const View& tangent, const View& self, const View& output,
                      int64_t dim) {
  if (is_complex(self.dtype))
    return logcumsumexp_tangent<std::complex<double>>(out, tangent, self, output, dim);
  logcumsumexp_tangent<double>(out, tangent, self, output, dim);
}
void logcumsumexp_backward(const View& out, const View& gy, const View& self, const View& output,
                           int64_t dim) {
  if (is_complex(self.dtype))
    return logcumsumexp_gradient<std::complex<double>>(out, gy, self, output, dim);
  logcumsumexp_gradient<double>(out, gy, self, output, dim);
}

}  // namespace taeda::cpu
