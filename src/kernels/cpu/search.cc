#include "kernels/cpu/search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/index_common.h"

namespace taeda::cpu {

std::vector<int64_t> true_positions(const View& x) {
  const DenseView flags(x, DType::kBool);
  const uint8_t* f = flags.as<uint8_t>();
  constexpr int64_t kBlock = 1 << 15;
  const int64_t blocks = (x.numel + kBlock - 1) / kBlock;
  std::vector<int64_t> starts(static_cast<size_t>(blocks) + 1);
  parallel_for(0, blocks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      int64_t count = 0;
      for (int64_t i = b * kBlock; i < std::min(x.numel, (b + 1) * kBlock); i++) count += f[i] != 0;
      starts[static_cast<size_t>(b) + 1] = count;
    }
  });
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  const int64_t total = starts.back();
  std::vector<int64_t> out(static_cast<size_t>(total) +
                           1);  // one more: the loop below writes before it knows
  parallel_for(0, blocks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      int64_t at = starts[static_cast<size_t>(b)];
      const int64_t stop = starts[static_cast<size_t>(b) + 1];
      for (int64_t i = b * kBlock; at < stop; i++) {
        out[static_cast<size_t>(at)] = i;
        at += f[i] != 0;
      }
    }
  });
  out.resize(static_cast<size_t>(total));
  return out;
}

void unravel(const View& out, Span<const int64_t> positions, IntSpan sizes) {
  const int64_t ndim = static_cast<int64_t>(sizes.size()),
                count = static_cast<int64_t>(positions.size());
  int64_t* const to = out.as<int64_t>();
  if (ndim == 0 || count == 0) return;
  parallel_for(0, count, 1 << 13, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      int64_t rest = positions[static_cast<size_t>(i)];
      for (int64_t d = ndim; d-- > 1;) {
        const int64_t size = sizes[static_cast<size_t>(d)], q = rest / size;
        to[i * ndim + d] = rest - q * size;
        rest = q;
      }
      to[i * ndim] = rest;
    }
  });
}

void take_positions(const View& out, const View& x, Span<const int64_t> positions) {
  const DenseView dense(x);
  with_width(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* const to = out.as<T>();
    const T* const from = dense.as<T>();
    parallel_for(0, static_cast<int64_t>(positions.size()), 1 << 14,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; i++)
                     to[i] = from[positions[static_cast<size_t>(i)]];
                 });
  });
}

void put_positions(const View& x, const View& source, Span<const int64_t> positions) {
  check_writable(x);
  const DenseView dense(source, x);
  with_width(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = dense.as<T>();
    for (int64_t p : positions) {
      int64_t offset = 0;
      for (size_t d = x.sizes.size(); d-- > 0;) {
        offset += p % x.sizes[d] * x.strides[d];
        p /= x.sizes[d];
      }
      x.as<T>()[offset] = *from++;
    }
  });
}

namespace {

// How many elements of the row, from its start, fulfil a condition that those after them do not.
// No branch depends on data: a processor cannot guess the ways of a search.
template <class T, class Condition>
int64_t count_while(const T* row, int64_t n, const Condition& condition) {
  const T* base = row;
  while (n > 1) {
    const int64_t half = n / 2;
    base += half * static_cast<int64_t>(condition(base[half - 1]));
    n -= half;
  }
  return base - row + (n == 1 && condition(*base));
}

}  // namespace

void searchsorted(const View& out, const View& boundaries, const View& values, bool right) {
  const int64_t n = values.sizes[1], m = boundaries.sizes[1];
  const int64_t step = boundaries.sizes[0] == 1 ? 0 : m;
  int64_t* const to = out.as<int64_t>();
  with_dtype<AllTypes>(values.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!is_complex(kDTypeOf<T>)) {
      const T* const v = values.as<T>();
      const T* const b = boundaries.as<T>();
      const auto less = [](const T& x, const T& y) {  // NaN above every number
        if constexpr (is_floating(kDTypeOf<T>)) {
          const auto p = static_cast<double>(x), q = static_cast<double>(y);
          return (p < q) | ((q != q) & (p == p));
        } else {
          return x < y;
        }
      };
      parallel_for(0, values.numel, 1 << 10, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          const T* row = b + i / n * step;
          to[i] = right ? count_while(row, m, [&](const T& x) { return !less(v[i], x); })
                        : count_while(row, m, [&](const T& x) { return less(x, v[i]); });
        }
      });
    }
  });
}

void bincount(const View& out, const View& x, const View& weights) {
  const int64_t* const at = x.as<int64_t>();
  if (!weights.present) {
    int64_t* const counts = out.as<int64_t>();
    for (int64_t i = 0; i < x.numel; i++) counts[at[i]]++;
    return;
  }
  const DenseView w(weights, out.dtype);
  with_wide_floating(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* const sums = out.as<T>();
    const T* const values = w.as<T>();
    for (int64_t i = 0; i < x.numel; i++) sums[at[i]] += values[i];
  });
}

void histogram(const View& out, const View& x, double low, double high) {
  with_wide_floating(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const DenseView dense(x, kDTypeOf<T>);
    T* const counts = out.as<T>();
    const T *v = dense.as<T>(), first = static_cast<T>(low), last = static_cast<T>(high);
    const int64_t bins = out.numel;
    for (int64_t i = 0; i < x.numel; i++) {
      if (!(v[i] >= first && v[i] <= last)) continue;
      const auto bin = static_cast<int64_t>((v[i] - first) / (last - first) * static_cast<T>(bins));
      counts[std::clamp<int64_t>(bin, 0, bins - 1)] += T(1);
    }
  });
}

std::vector<int64_t> run_starts(const View& rows, int64_t n, int64_t width) {
  std::vector<int64_t> starts;
  with_dtype<AllTypes>(rows.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = rows.as<T>();
    for (int64_t i = 0; i < n; i++) {
      bool same = i > 0;
      for (int64_t k = 0; same && k < width; k++) same = x[i * width + k] == x[(i - 1) * width + k];
      if (!same) starts.push_back(i);
    }
  });
  return starts;
}

std::vector<int64_t> sort_rows(const View& rows, int64_t n, int64_t width) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  with_dtype<AllTypes>(rows.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!is_complex(kDTypeOf<T>)) {
      const T* x = rows.as<T>();
      std::stable_sort(order.begin(), order.end(), [=](int64_t a, int64_t b) {
        for (int64_t k = 0; k < width; k++) {
          const T &p = x[a * width + k], &q = x[b * width + k];
          if (p < q) return true;
          if (q < p) return false;
        }
        return false;
      });
    }
  });
  return order;
}

}  // namespace taeda::cpu
