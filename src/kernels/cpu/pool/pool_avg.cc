// Average pooling, plain and adaptive, and its adjoint: gx = sum over windows of gy / divisor.
#include <algorithm>

#include "base/parallel.h"
#include "base/sliced.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/optional.h"

namespace taeda::cpu {

namespace {

// One dimension of a window: the positions inside the input, and how many count in the mean.
struct Range {
  int64_t begin, end, counted;
};

// For every output position of each dimension its range; the mean divides by the product of
// `counted`.
struct Ranges {
  std::vector<Range> d, h, w;
};

Range plain_range(const Windows& w, int64_t o, bool include_padding) {
  const int64_t start = w.start(o), padded_end = std::min(start + w.kernel, w.in + w.padding);
  const int64_t begin = std::max<int64_t>(start, 0), end = std::min(padded_end, w.in);
  return {begin, end, include_padding ? padded_end - start : end - begin};
}
Range adaptive_range(const Windows& w, int64_t o, bool) {
  const int64_t begin = o * w.in / w.out, end = ((o + 1) * w.in + w.out - 1) / w.out;
  return {begin, end, end - begin};
}

template <class F>
Ranges make_ranges(const PoolShape& s, bool include_padding, const F& range) {
  const auto all = [&](const Windows& w) {
    std::vector<Range> ranges;
    ranges.reserve(static_cast<size_t>(w.out));
    in_slices(w.out, [&](int64_t o, int64_t end) {
      for (; o < end; o++) ranges.push_back(range(w, o, include_padding));
    });
    return ranges;
  };
  return {all(s.d), all(s.h), all(s.w)};
}

// In f64: windows over padding may have more elements than an integer counts.
template <class A>
A divisor_of(const Range& d, const Range& h, const Range& w, OptInt fixed) {
  if (fixed) return static_cast<A>(*fixed);
  return static_cast<A>(static_cast<double>(d.counted) * static_cast<double>(h.counted) *
                        static_cast<double>(w.counted));
}

// Adds the window's rows first, so that the inner loop runs along memory.
template <class T>
[[gnu::optimize("O3")]] void average_plane(const PoolShape& s, const Ranges& r, OptInt divisor,
                                           const T* x, T* y, Sum<T>* row) {
  const WindowRuns runs(s.w);
  int64_t rows = 0;
  for (const Range& d : r.d) {
    for (const Range& h : r.h) {
      look_at_row(rows++);
      std::fill_n(row, s.w.in, Sum<T>(0));
      for (int64_t i = d.begin; i < d.end; i++) {
        for (int64_t j = h.begin; j < h.end; j++) {
          const T* line = x + (i * s.h.in + j) * s.w.in;
          for (int64_t k = 0; k < s.w.in; k++) row[k] += static_cast<Sum<T>>(line[k]);
        }
      }
      if (s.w.kernel == 1 && s.w.in == s.w.out) {  // channels-last
        const Sum<T> divide = divisor_of<Sum<T>>(d, h, {0, 1, 1}, divisor);
        for (int64_t k = 0; k < s.w.in; k++) *y++ = T(row[k] / divide);
        continue;
      }
      for (int64_t o = 0; o < s.w.out;) {
        for (const int64_t stop = runs.next(o); o < stop; o++) {
          const Range& w = r.w[static_cast<size_t>(o)];
          Sum<T> total = 0;
          for (int64_t k = w.begin; k < w.end; k++) total += row[k];
          *y++ = T(total / divisor_of<Sum<T>>(d, h, w, divisor));
        }
      }
    }
  }
}

template <class T>
[[gnu::optimize("O3")]] void spread_plane(const PoolShape& s, const Ranges& r, OptInt divisor,
                                          const T* gy, Sum<T>* gx) {
  const WindowRuns runs(s.w);
  int64_t rows = 0;
  for (const Range& d : r.d) {
    for (const Range& h : r.h) {
      look_at_row(rows++);
      if (s.w.kernel == 1 && s.w.in == s.w.out) {  // channels-last
        const Sum<T> divide = divisor_of<Sum<T>>(d, h, {0, 1, 1}, divisor);
        for (int64_t i = d.begin; i < d.end; i++) {
          for (int64_t j = h.begin; j < h.end; j++) {
            Sum<T>* line = gx + (i * s.h.in + j) * s.w.in;
            for (int64_t k = 0; k < s.w.in; k++) line[k] += static_cast<Sum<T>>(gy[k]) / divide;
          }
        }
        gy += s.w.in;
        continue;
      }
      for (int64_t o = 0; o < s.w.out;) {
        for (const int64_t stop = runs.next(o); o < stop; o++) {
          const Range& w = r.w[static_cast<size_t>(o)];
          const Sum<T> share = static_cast<Sum<T>>(*gy++) / divisor_of<Sum<T>>(d, h, w, divisor);
          for (int64_t i = d.begin; i < d.end; i++) {
            for (int64_t j = h.begin; j < h.end; j++) {
              Sum<T>* line = gx + (i * s.h.in + j) * s.w.in;
              for (int64_t k = w.begin; k < w.end; k++) line[k] += share;
            }
          }
        }
      }
    }
  }
}

void average(const View& result, const View& input, const PoolShape& s, const Ranges& r,
             OptInt divisor) {
  with_dtype<Join<Floating, Types<int64_t>>>(input.dtype, [&]<class T>(T) {
    parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
      const Scratch<Sum<T>> row(s.w.in);
      for (int64_t p = begin; p < end; p++)
        average_plane(s, r, divisor, input.as<T>() + p * s.in_size(),
                      result.as<T>() + p * s.out_size(), row.data());
    });
  });
}

void spread(const View& result, const View& grad_output, const PoolShape& s, const Ranges& r,
            OptInt divisor) {
  with_dtype<Floating>(result.dtype, [&]<class T>(T) {
    parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
      constexpr bool kDirect = std::is_same_v<T, Sum<T>>;
      const Scratch<Sum<T>> wide(kDirect ? 0 : s.in_size());
      for (int64_t p = begin; p < end; p++) {
        T* gx = result.as<T>() + p * s.in_size();
        const T* gy = grad_output.as<T>() + p * s.out_size();
        if constexpr (kDirect) {
          sliced_fill(gx, s.in_size(), T(0));
          spread_plane(s, r, divisor, gy, gx);
        } else {
          sliced_fill(wide.data(), s.in_size(), Sum<T>(0));
          spread_plane(s, r, divisor, gy, wide.data());
          for (int64_t i = 0; i < s.in_size(); i++) gx[i] = T(wide[i]);
        }
      }
    });
  });
}

const DimVector kOne{1};

PoolShape adaptive_shape(IntSpan in, IntSpan out, size_t spatial) {
  const DimVector ones(spatial, 1);
  return pool_shape(in, out, ones, ones, DimVector{0}, kOne);
}

}  // namespace

void avg_pool(const View& result, const View& input, IntSpan kernel_size, IntSpan stride,
              IntSpan padding, bool, bool count_include_pad, OptInt divisor_override) {
  const PoolShape s = pool_shape(input.sizes, result.sizes, kernel_size, stride, padding, kOne);
  average(result, input, s, make_ranges(s, count_include_pad, plain_range), divisor_override);
}
void avg_pool1d(const View& result, const View& input, IntSpan kernel_size, IntSpan stride,
                IntSpan padding, bool ceil_mode, bool count_include_pad) {
  avg_pool(result, input, kernel_size, stride, padding, ceil_mode, count_include_pad, std::nullopt);
}

void avg_pool_backward(const View& result, const View& grad_output, IntSpan, IntSpan kernel_size,
                       IntSpan stride, IntSpan padding, bool, bool count_include_pad,
                       OptInt divisor_override) {
  const PoolShape s =
      pool_shape(result.sizes, grad_output.sizes, kernel_size, stride, padding, kOne);
  spread(result, grad_output, s, make_ranges(s, count_include_pad, plain_range), divisor_override);
}
void avg_pool1d_backward(const View& result, const View& grad_output, IntSpan input_size,
                         IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                         bool count_include_pad) {
  avg_pool_backward(result, grad_output, input_size, kernel_size, stride, padding, ceil_mode,
                    count_include_pad, std::nullopt);
}

void adaptive_avg_pool(const View& result, const View& input, IntSpan output_size) {
  if (result.numel == 0) return;
  const PoolShape s = adaptive_shape(input.sizes, result.sizes, output_size.size());
  average(result, input, s, make_ranges(s, false, adaptive_range), std::nullopt);
}

void adaptive_avg_pool_backward(const View& result, const View& grad_output, IntSpan input_size) {
  // The number of pooled dimensions does not matter: a dimension pooled to its own size is copied.
  const size_t spatial = std::min<size_t>(3, input_size.size() - 1);
  const PoolShape s = adaptive_shape(result.sizes, grad_output.sizes, spatial);
  spread(result, grad_output, s, make_ranges(s, false, adaptive_range), std::nullopt);
}

}  // namespace taeda::cpu
