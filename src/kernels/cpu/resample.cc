// Resizing images: every output position of a dimension is a weighted sum of a few input positions
// ("taps"), and the dimensions are resized one after the other. The gradient runs the same taps
// backwards. Sources: Keys, "Cubic convolution interpolation" (1981) for the cubic weights;
// antialiasing widens the filter by the scale, as Pillow does.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/scratch.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cpu {

namespace {

template <class A>
struct Taps {
  int64_t in, out, count;     // count taps for each output position
  std::vector<int64_t> from;  // out * count input positions
  std::vector<A> weight;
  bool copies = false;  // one tap of weight one
  bool stays = false;   // every position is its own tap

  void add(int64_t position, A w) {
    from.push_back(std::clamp<int64_t>(position, 0, in - 1));
    weight.push_back(w);
  }
};

// Input elements per output element.
template <class A>
A step_of(int64_t in, int64_t out, bool align_corners, double scale) {
  if (align_corners) return out > 1 ? static_cast<A>(in - 1) / static_cast<A>(out - 1) : A(0);
  // A tiny scale must not become an infinite step, whose product with 0 is NaN.
  return scale > 0 ? static_cast<A>(std::min(1.0 / scale, 1e18))
                   : static_cast<A>(in) / static_cast<A>(out);
}

template <class A>
A cubic_weight(A distance, A a) {
  const A x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

template <class A>
void add_nearest(Taps<A>& t, double scale, bool exact) {
  const float step = scale > 0 ? static_cast<float>(std::min(1.0 / scale, 1e18))
                               : static_cast<float>(t.in) / static_cast<float>(t.out);
  t.count = 1;
  t.copies = true;
  for (int64_t o = 0; o < t.out; o++) {
    const float at = exact ? (static_cast<float>(o) + 0.5f) * step : static_cast<float>(o) * step;
    t.add(static_cast<int64_t>(std::min(std::floor(at), 9e18f)), A(1));
  }
}

template <class A>
void add_linear(Taps<A>& t, A step, bool align_corners) {
  t.count = 2;
  for (int64_t o = 0; o < t.out; o++) {
    A at = align_corners ? step * static_cast<A>(o) : step * (static_cast<A>(o) + A(0.5)) - A(0.5);
    at = std::clamp<A>(at, 0, static_cast<A>(t.in - 1));
    const int64_t left = std::min(static_cast<int64_t>(at), t.in - 1);
    const A right = std::clamp<A>(at - static_cast<A>(left), 0, 1);
    t.add(left, 1 - right);
    t.add(left + 1, right);
  }
}

template <class A>
void add_cubic(Taps<A>& t, A step, bool align_corners) {
  t.count = 4;
  for (int64_t o = 0; o < t.out; o++) {
    const A at =
        align_corners ? step * static_cast<A>(o) : step * (static_cast<A>(o) + A(0.5)) - A(0.5);
    const A base = std::floor(std::clamp<A>(at, A(-4e18), A(4e18)));
    for (int64_t k = -1; k <= 2; k++)
      t.add(static_cast<int64_t>(base) + k,
            cubic_weight<A>(at - base - static_cast<A>(k), A(-0.75)));
  }
}

template <class A>
void add_antialiased(Taps<A>& t, A step, bool cubic) {
  const A widen = std::max<A>(step, 1), support = (cubic ? A(2) : A(1)) * widen;
  TD_CHECK(support < A(1e9), "interpolate: the antialiasing filter is too wide");
  t.count = std::min(static_cast<int64_t>(std::ceil(support)) * 2 + 1, t.in);
  for (int64_t o = 0; o < t.out; o++) {
    const A centre = step * (static_cast<A>(o) + A(0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + A(0.5)), 0);
    const int64_t last = std::min<int64_t>(static_cast<int64_t>(centre + support + A(0.5)), t.in);
    std::vector<A> w;
    A total = 0;
    for (int64_t i = first; i < last && i - first < t.count; i++) {
      const A distance = (static_cast<A>(i) - centre + A(0.5)) / widen;
      w.push_back(cubic ? cubic_weight<A>(distance, A(-0.5))
                        : std::max<A>(0, 1 - std::abs(distance)));
      total += w.back();
    }
    for (int64_t k = 0; k < t.count; k++) {
      const bool inside = k < static_cast<int64_t>(w.size());
      t.add(first + (inside ? k : 0),
            inside && total != 0 ? w[static_cast<size_t>(k)] / total : A(0));
    }
  }
}

// A negative scale leaves the dimension as it is.
template <class A>
Taps<A> make_taps(int64_t in, int64_t out, std::string_view mode, bool align_corners,
                  double scale) {
  Taps<A> t{in, out, 0, {}, {}};
  if (scale < 0) {
    TD_CHECK(in == out, "interpolate: a dimension that stays has size {} and {}", in, out);
    t.stays = true;
    return t;
  }
  const A step = step_of<A>(in, out, align_corners, scale);
  if (mode == "nearest" || mode == "nearest-exact")
    add_nearest(t, scale, mode == "nearest-exact");
  else if (mode == "linear")
    add_linear(t, step, align_corners);
  else if (mode == "cubic")
    add_cubic(t, step, align_corners);
  else
    add_antialiased(t, step, mode == "cubic-aa");
  return t;
}

// Bytes are weighed in fixed point: 16-bit weights with as many bits after the point as the largest
// allows, sums rounded to the nearest byte after each dimension.
struct ByteTaps {
  int bits;
  std::vector<int32_t> weight;
};

ByteTaps byte_taps(Taps<double> t) {
  for (size_t i = 0; i < t.weight.size(); i++) {  // taps beyond the border add up at its element
    const size_t first = i - i % static_cast<size_t>(t.count);
    for (size_t k = first; k < i; k++) {
      if (t.from[k] != t.from[i]) continue;
      t.weight[k] += t.weight[i];
      t.weight[i] = 0;
      break;
    }
  }
  const double largest = *std::max_element(t.weight.begin(), t.weight.end());
  ByteTaps fixed{0, {}};
  while (fixed.bits < 22 && std::floor(0.5 + largest * (1 << (fixed.bits + 1))) < (1 << 15))
    fixed.bits++;
  for (double w : t.weight)
    fixed.weight.push_back(static_cast<int32_t>(std::lround(w * (1 << fixed.bits))));
  return fixed;
}

void resize_bytes(const Taps<double>& t, const ByteTaps& fixed, const uint8_t* x, uint8_t* y,
                  int64_t outer, int64_t inner) {
  for (int64_t a = 0; a < outer; a++, x += t.in * inner) {
    for (int64_t o = 0; o < t.out; o++, y += inner) {
      const int64_t* from = t.from.data() + o * t.count;
      const int32_t* w = fixed.weight.data() + o * t.count;
      for (int64_t i = 0; i < inner; i++) {
        int32_t total = 1 << (fixed.bits - 1);
        for (int64_t k = 0; k < t.count; k++) total += w[k] * x[from[k] * inner + i];
        y[i] = static_cast<uint8_t>(std::clamp(total >> fixed.bits, 0, 255));
      }
    }
  }
}

// y[outer, out, inner] = sum of x[outer, taps, inner]
template <class From, class To, class A>
[[gnu::optimize("O3")]] void resize_axis(const Taps<A>& t, const From* x, To* y, int64_t outer,
                                         int64_t inner) {
  if (t.stays) {
    for (int64_t i = 0; i < outer * t.in * inner; i++) y[i] = static_cast<To>(x[i]);
    return;
  }
  for (int64_t a = 0; a < outer; a++, x += t.in * inner) {
    for (int64_t o = 0; o < t.out; o++, y += inner) {
      const int64_t* from = t.from.data() + o * t.count;
      const A* w = t.weight.data() + o * t.count;
      if (t.copies) {
        const From* line = x + from[0] * inner;
        for (int64_t i = 0; i < inner; i++) y[i] = static_cast<To>(line[i]);
        continue;
      }
      if (inner == 1) {
        A total = 0;
        for (int64_t k = 0; k < t.count; k++) total += w[k] * static_cast<A>(x[from[k]]);
        *y = static_cast<To>(total);
        continue;
      }
      if (t.count == 2) {
        const From *left = x + from[0] * inner, *right = x + from[1] * inner;
        for (int64_t i = 0; i < inner; i++)
          y[i] = static_cast<To>(w[0] * static_cast<A>(left[i]) + w[1] * static_cast<A>(right[i]));
        continue;
      }
      for (int64_t i = 0; i < inner; i++)
        y[i] = static_cast<To>(w[0] * static_cast<A>(x[from[0] * inner + i]));
      for (int64_t k = 1; k < t.count; k++) {
        const From* line = x + from[k] * inner;
        for (int64_t i = 0; i < inner; i++)
          y[i] = static_cast<To>(static_cast<A>(y[i]) + w[k] * static_cast<A>(line[i]));
      }
    }
  }
}

// The adjoint: gx[outer, taps, inner] += weight * gy[outer, out, inner].
template <class From, class A>
[[gnu::optimize("O3")]] void resize_axis_gradient(const Taps<A>& t, const From* gy, A* gx,
                                                  int64_t outer, int64_t inner) {
  if (t.stays) {
    for (int64_t i = 0; i < outer * t.in * inner; i++) gx[i] = static_cast<A>(gy[i]);
    return;
  }
  std::fill_n(gx, outer * t.in * inner, A(0));
  for (int64_t a = 0; a < outer; a++, gx += t.in * inner) {
    for (int64_t o = 0; o < t.out; o++, gy += inner) {
      for (int64_t k = 0; k < t.count; k++) {
        A* line = gx + t.from[static_cast<size_t>(o * t.count + k)] * inner;
        const A w = t.weight[static_cast<size_t>(o * t.count + k)];
        for (int64_t i = 0; i < inner; i++) line[i] += w * static_cast<A>(gy[i]);
      }
    }
  }
}

// Weights and sums: double for double, float for the rest.
template <class T>
using Weight = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class A>
struct Plan {
  int64_t planes;
  Taps<A> d, h, w;
  int64_t in_size() const { return d.in * h.in * w.in; }
  int64_t out_size() const { return d.out * h.out * w.out; }
  int64_t grain() const {
    return std::max<int64_t>(1, (int64_t{1} << 14) / std::max<int64_t>(1, in_size() + out_size()));
  }
};

template <class A>
Plan<A> make_plan(IntSpan in, IntSpan out, std::string_view mode, bool align_corners,
                  Span<const double> scales) {
  const size_t n = in.size();
  const auto taps = [&](size_t from_last) {
    if (from_last >= n - 2) return make_taps<A>(1, 1, "nearest", false, 0);
    const double scale = from_last < scales.size() ? scales[scales.size() - 1 - from_last] : 0;
    return make_taps<A>(in[n - 1 - from_last], out[n - 1 - from_last], mode, align_corners, scale);
  };
  return {in[0] * in[1], taps(2), taps(1), taps(0)};
}

// Integers stay as they are between the dimensions: their modes copy, or round to bytes.
template <class T, class A>
using Middle = std::conditional_t<std::is_integral_v<T>, T, A>;

void resample_bytes(const View& result, const View& input, std::string_view mode,
                    bool align_corners, Span<const double> scales) {
  const auto p = make_plan<double>(input.sizes, result.sizes, mode, align_corners, scales);
  const ByteTaps w = byte_taps(p.w), h = byte_taps(p.h);
  parallel_for(0, p.planes, p.grain(), [&](int64_t begin, int64_t end) {
    const Scratch<uint8_t> wide(p.h.in * p.w.out);
    for (int64_t plane = begin; plane < end; plane++) {
      resize_bytes(p.w, w, input.as<uint8_t>() + plane * p.in_size(), wide.data(), p.h.in, 1);
      resize_bytes(p.h, h, wide.data(), result.as<uint8_t>() + plane * p.out_size(), 1, p.w.out);
    }
  });
}

}  // namespace

void resample(const View& result, const View& input, IntSpan, std::string_view mode,
              bool align_corners, double scale_d, double scale_h, double scale_w) {
  if (result.numel == 0) return;
  const double scales[] = {scale_d, scale_h, scale_w};
  if (input.dtype == DType::kUInt8 && !mode.starts_with("nearest"))
    return resample_bytes(result, input, mode, align_corners, scales);
  with_dtype<Numbers>(input.dtype, [&]<class T>(T) {
    using A = Weight<T>;
    using M = Middle<T, A>;
    const Plan<A> p = make_plan<A>(input.sizes, result.sizes, mode, align_corners, scales);
    parallel_for(0, p.planes, p.grain(), [&](int64_t begin, int64_t end) {
      const Scratch<M> wide(p.d.in * p.h.in * p.w.out), flat(p.d.in * p.h.out * p.w.out);
      for (int64_t plane = begin; plane < end; plane++) {
        const T* x = input.as<T>() + plane * p.in_size();
        resize_axis(p.w, x, wide.data(), p.d.in * p.h.in, 1);
        resize_axis(p.h, wide.data(), flat.data(), p.d.in, p.w.out);
        resize_axis(p.d, flat.data(), result.as<T>() + plane * p.out_size(), 1, p.h.out * p.w.out);
      }
    });
  });
}

void resample_backward(const View& result, const View& grad_output, IntSpan, std::string_view mode,
                       bool align_corners, double scale_d, double scale_h, double scale_w) {
  if (result.numel == 0) return;
  const double scales[] = {scale_d, scale_h, scale_w};
  with_dtype<Floating>(result.dtype, [&]<class T>(T) {
    using A = Weight<T>;
    const Plan<A> p = make_plan<A>(result.sizes, grad_output.sizes, mode, align_corners, scales);
    parallel_for(0, p.planes, p.grain(), [&](int64_t begin, int64_t end) {
      const Scratch<A> flat(p.d.in * p.h.out * p.w.out), wide(p.d.in * p.h.in * p.w.out),
          narrow(p.in_size());
      for (int64_t plane = begin; plane < end; plane++) {
        resize_axis_gradient(p.d, grad_output.as<T>() + plane * p.out_size(), flat.data(), 1,
                             p.h.out * p.w.out);
        resize_axis_gradient(p.h, flat.data(), wide.data(), p.d.in, p.w.out);
        resize_axis_gradient(p.w, wide.data(), narrow.data(), p.d.in * p.h.in, 1);
        T* gx = result.as<T>() + plane * p.in_size();
        for (int64_t i = 0; i < p.in_size(); i++) gx[i] = static_cast<T>(narrow[i]);
      }
    });
  });
}

}  // namespace taeda::cpu
