// Resizing images: every output position of a dimension is a weighted sum of a few input positions
// ("taps"), and the dimensions are resized one after the other. The gradient runs the same taps
// backwards: each input position is a weighted sum of the results that it went into.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/image/resample_axis.h"
#include "kernels/cpu/image/resample_rows.h"
#include "kernels/cpu/rows/row_io.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cpu {

namespace {

template <class A>
struct Taps {
  int64_t in, out, count;     // count taps for each output position
  std::vector<int64_t> from;  // out * count input positions
  std::vector<A> weight;
  bool stays = false;  // every position is its own tap
  Looks looks = {};

  void add(int64_t position, A w) {
    looks.after(1);
    from.push_back(std::clamp<int64_t>(position, 0, in - 1));
    weight.push_back(w);
  }
};

// Taps that a position has less than others are the first one with weight 0.
template <class A>
Taps<A> make_taps(const ResampleAxis<A>& axis) {
  Taps<A> t{axis.in, axis.out, 0, {}, {}};
  t.stays = axis.mode == ResampleMode::kStays;
  if (t.stays) return t;
  t.count = axis.count();
  for (int64_t o = 0; o < t.out; o++) {
    const ResampleTaps<A> taps = taps_of(axis, o);
    for (int64_t k = 0; k < t.count; k++) {
      const bool inside = k < taps.count;
      t.add(taps.first + (inside ? k : 0), inside ? weight_of(axis, taps, k) : A(0));
    }
  }
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

// Weights and sums: double for double, float for the rest.
template <class T>
using Weight = std::conditional_t<std::is_same_v<T, double>, double, float>;

// What each result position of a dimension sums: the summands of o are first[o] to first[o + 1].
template <class A>
struct Axis {
  int64_t in = 1, out = 1;
  bool stays = false;
  std::vector<int64_t> first, from;
  std::vector<A> weight;
  int64_t reach = 1;  // positions from the first to the last summand of any result

  void measure() {
    Looks looks;
    for (size_t o = 0; !stays && o < static_cast<size_t>(out); o++) {
      looks.after(1);
      if (first[o] == first[o + 1]) continue;
      const auto range = std::minmax_element(from.begin() + first[o], from.begin() + first[o + 1]);
      reach = std::max(reach, *range.second - *range.first + 1);
    }
  }
};

template <class A>
Axis<A> forward_axis(const Taps<A>& t) {
  Axis<A> axis{t.in, t.out, t.stays, {}, t.from, t.weight};
  for (int64_t o = 0; o <= t.out; o++) axis.first.push_back(o * t.count);
  axis.measure();
  return axis;
}

// The adjoint: each input position sums the results that it went into.
template <class A>
Axis<A> backward_axis(const Taps<A>& t) {
  Axis<A> axis{t.out, t.in, t.stays, {}, {}, {}};
  std::vector<int64_t>& first = axis.first;
  first.assign(static_cast<size_t>(t.in) + 1, 0);
  for (const int64_t position : t.from) first[static_cast<size_t>(position) + 1]++;
  for (size_t i = 1; i < first.size(); i++) first[i] += first[i - 1];
  axis.from.resize(t.from.size());
  axis.weight.resize(t.from.size());
  std::vector<int64_t> next = first;
  for (size_t i = 0; i < t.from.size(); i++) {
    const size_t at = static_cast<size_t>(next[static_cast<size_t>(t.from[i])]++);
    axis.from[at] = static_cast<int64_t>(i) / t.count;
    axis.weight[at] = t.weight[i];
  }
  axis.measure();
  return axis;
}

void add_rows(const float* const* rows, const float* w, int64_t count, float* y, int64_t n) {
  sum_of_rows(rows, w, count, y, n);
}
[[gnu::optimize("O3")]] void add_rows(const double* const* rows, const double* w, int64_t count,
                                      double* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = w[0] * rows[0][i];
  for (int64_t k = 1; k < count; k++)
    for (int64_t i = 0; i < n; i++) y[i] += w[k] * rows[k][i];
}

template <class A>
struct Plan {
  int64_t planes;
  Axis<A> d, h, w;
  RowSums along_w;  // w for vectors of float

  int64_t in_size() const { return d.in * h.in * w.in; }
  int64_t out_size() const { return d.out * h.out * w.out; }
  bool is_flat() const { return d.in == 1 && d.out == 1; }
  // The dimension that the work on a plane is cut along.
  int64_t length() const { return is_flat() ? h.out : d.out; }

  void resize_row(const A* x, A* y) const {
    if constexpr (std::is_same_v<A, float>) {
      if (along_w.lanes > 0) return sum_along_row(along_w, x, y);
    }
    Looks looks;
    for (int64_t o = 0; o < w.out; o++) {
      looks.after(1);
      A total = 0;
      for (int64_t i = w.first[static_cast<size_t>(o)]; i < w.first[static_cast<size_t>(o + 1)];
           i++)
        total += w.weight[static_cast<size_t>(i)] * x[w.from[static_cast<size_t>(i)]];
      y[o] = total;
    }
  }
};

// The lines of a dimension that were computed last.
template <class A>
class Lines {
 public:
  Lines(int64_t count, int64_t size)
      : size_(size), position_(static_cast<size_t>(count), -1), lines_(count * size) {}
  void forget() { std::fill(position_.begin(), position_.end(), -1); }
  // Line i, which compute(line) makes where it is not there.
  template <class F>
  const A* get(int64_t i, const F& compute) {
    const int64_t slot = i % static_cast<int64_t>(position_.size());
    A* const line = lines_.data() + slot * size_;
    if (std::exchange(position_[static_cast<size_t>(slot)], i) != i) compute(line);
    return line;
  }

 private:
  const int64_t size_;
  std::vector<int64_t> position_;
  const Scratch<A> lines_;
};

// Resizes planes one after the other: rows first where that makes fewer of them, and each line as
// late as possible, so that it is in the cache when it is summed.
template <class A>
class Resizer {
 public:
  explicit Resizer(const Plan<A>& p)
      : p_(p),
        narrow_h_(p.h.in > p.h.out && !p.w.stays),
        narrow_d_(p.d.in > p.d.out),
        rows_(narrow_h_ ? 1 : p.h.reach, narrow_h_ ? p.w.in : p.w.out),
        slices_(p.is_flat() ? 0
                : narrow_d_ ? 1
                            : p.d.reach,
                narrow_d_ ? p.h.in * p.w.in : p.h.out * p.w.out) {}

  // Positions begin to end of the plane's first dimension that is not flat.
  void resize(const A* x, A* y, int64_t begin, int64_t end) {
    if (p_.is_flat()) return resize_slice(x, y, begin, end);
    const int64_t in = p_.h.in * p_.w.in, out = p_.h.out * p_.w.out;
    slices_.forget();
    for (int64_t o = begin; o < end; o++) {
      if (narrow_d_) {
        slices_.forget();
        const A* slice = slices_.get(
            0, [&](A* to) { sum(p_.d, o, to, in, [&](int64_t i) { return x + i * in; }); });
        resize_slice(slice, y + o * out, 0, p_.h.out);
      } else {
        sum(p_.d, o, y + o * out, out, [&](int64_t i) {
          return slices_.get(i, [&](A* to) { resize_slice(x + i * in, to, 0, p_.h.out); });
        });
      }
    }
  }

 private:
  void resize_slice(const A* x, A* y, int64_t begin, int64_t end) {
    const int64_t in = p_.w.in, out = p_.w.out;
    rows_.forget();
    for (int64_t o = begin; o < end; o++) {
      if (narrow_h_) {
        rows_.forget();
        p_.resize_row(
            rows_.get(0,
                      [&](A* to) { sum(p_.h, o, to, in, [&](int64_t i) { return x + i * in; }); }),
            y + o * out);
      } else {
        sum(p_.h, o, y + o * out, out, [&](int64_t i) {
          if (p_.w.stays) return x + i * in;
          return rows_.get(i, [&](A* to) { p_.resize_row(x + i * in, to); });
        });
      }
    }
  }

  // y = what position o of an axis sums of lines of n elements.
  template <class F>
  static void sum(const Axis<A>& axis, int64_t o, A* y, int64_t n, const F& line) {
    constexpr int64_t kFew = 16;
    if (axis.stays) {
      std::copy_n(line(o), n, y);
      return;
    }
    const int64_t first = axis.first[static_cast<size_t>(o)],
                  count = axis.first[static_cast<size_t>(o + 1)] - first;
    const A* weight = axis.weight.data() + first;
    const A* few[kFew];
    const Scratch<const A*> many(count > kFew ? count : 0);
    const A** const lines = count > kFew ? many.data() : few;
    for (int64_t k = 0; k < count; k++) lines[k] = line(axis.from[static_cast<size_t>(first + k)]);
    if (count == 0)
      std::fill_n(y, n, A(0));
    else if (count == 1 && weight[0] == 1)
      std::copy_n(lines[0], n, y);
    else
      add_rows(lines, weight, count, y, n);
  }

  const Plan<A>& p_;
  const bool narrow_h_, narrow_d_;
  Lines<A> rows_, slices_;
};

template <class A>
std::array<Taps<A>, 3> make_all_taps(IntSpan in, IntSpan out, std::string_view mode,
                                     bool align_corners, Span<const double> scales) {
  const auto axes = resample_axes<A>(in, out, mode, align_corners, scales);
  return {make_taps(axes[0]), make_taps(axes[1]), make_taps(axes[2])};
}

template <class A>
Plan<A> make_plan(int64_t planes, Axis<A> d, Axis<A> h, Axis<A> w) {
  Plan<A> p{planes, std::move(d), std::move(h), std::move(w), {}};
  if constexpr (std::is_same_v<A, float>) {
    if (!p.w.stays && p.w.in < std::numeric_limits<int32_t>::max())
      p.along_w = arrange_sums(p.w.in, p.w.out, p.w.first, p.w.from, p.w.weight);
  }
  return p;
}

// y = the planes of x, resized. Planes of half and bfloat16 are widened as a whole, others cut into
// a few parts where there are few.
template <class T, class A>
void resize_planes(const Plan<A>& p, const T* x, T* y) {
  constexpr bool kDirect = std::is_same_v<T, A>;
  constexpr int64_t kManyPlanes = 16, kPart = 16;
  const int64_t parts = kDirect && p.planes < kManyPlanes ? (p.length() + kPart - 1) / kPart : 1;
  const int64_t grain = std::max<int64_t>(
      1, (int64_t{1} << 14) / std::max<int64_t>(1, (p.in_size() + p.out_size()) / parts));
  parallel_for(0, p.planes * parts, grain, [&](int64_t begin, int64_t end) {
    Resizer<A> resizer(p);
    const Scratch<A> wide_x(kDirect ? 0 : p.in_size()), wide_y(kDirect ? 0 : p.out_size());
    for (int64_t i = begin; i < end; i++) {
      const T* from = x + i / parts * p.in_size();
      T* to = y + i / parts * p.out_size();
      const int64_t first = i % parts * p.length() / parts,
                    last = (i % parts + 1) * p.length() / parts;
      if constexpr (kDirect) {
        resizer.resize(from, to, first, last);
      } else {
        convert_row(wide_x.data(), kDTypeOf<A>, 1, from, kDTypeOf<T>, 1, p.in_size());
        resizer.resize(wide_x.data(), wide_y.data(), first, last);
        convert_row(to, kDTypeOf<T>, 1, wide_y.data(), kDTypeOf<A>, 1, p.out_size());
      }
    }
  });
}

// One tap of weight one in each dimension: elements are moved.
template <class T>
void copy_planes(const std::array<Taps<float>, 3>& taps, int64_t planes, const T* x, T* y) {
  const Taps<float>&d = taps[0], &h = taps[1], &w = taps[2];
  const auto source = [](const Taps<float>& t, int64_t o) {
    return t.stays ? o : t.from[static_cast<size_t>(o)];
  };
  const int64_t rows = d.out * h.out;
  parallel_for(0, planes * rows, std::max<int64_t>(1, (int64_t{1} << 14) / (w.in + w.out)),
               [&](int64_t begin, int64_t end) {
                 int64_t last = -1;  // where the row before came from
                 for (int64_t i = begin; i < end; i++) {
                   const int64_t line = (i / rows * d.in + source(d, i % rows / h.out)) * h.in +
                                        source(h, i % h.out);
                   const T* from = x + line * w.in;
                   T* to = y + i * w.out;
                   if (w.stays)
                     std::copy_n(from, w.in, to);
                   else if (line == last)
                     std::copy_n(to - w.out, w.out, to);
                   else
                     in_slices(w.out, [&](int64_t o, int64_t stop) {
                       for (; o < stop; o++) to[o] = from[w.from[static_cast<size_t>(o)]];
                     });
                   last = line;
                 }
               });
}

void resample_bytes(const View& result, const View& input, std::string_view mode,
                    bool align_corners, Span<const double> scales) {
  const auto taps = make_all_taps<double>(input.sizes, result.sizes, mode, align_corners, scales);
  const Taps<double>&rows = taps[1], &columns = taps[2];
  const ByteTaps fixed_w = byte_taps(columns), fixed_h = byte_taps(rows);
  const int64_t in = rows.in * columns.in, out = rows.out * columns.out,
                grain = std::max<int64_t>(1, (int64_t{1} << 14) / std::max<int64_t>(1, in + out));
  parallel_for(0, input.sizes[0] * input.sizes[1], grain, [&](int64_t begin, int64_t end) {
    const Scratch<uint8_t> wide(rows.in * columns.out);
    for (int64_t plane = begin; plane < end; plane++) {
      resize_bytes(columns, fixed_w, input.as<uint8_t>() + plane * in, wide.data(), rows.in, 1);
      resize_bytes(rows, fixed_h, wide.data(), result.as<uint8_t>() + plane * out, 1, columns.out);
    }
  });
}

}  // namespace

void resample(const View& result, const View& input, IntSpan, std::string_view mode,
              bool align_corners, double scale_d, double scale_h, double scale_w) {
  if (result.numel == 0) return;
  const double scales[] = {scale_d, scale_h, scale_w};
  const int64_t planes = input.sizes[0] * input.sizes[1];
  const bool moves = mode.starts_with("nearest");
  if (input.dtype == DType::kUInt8 && !moves)
    return resample_bytes(result, input, mode, align_corners, scales);
  if (moves && input.dtype != DType::kFloat32) {
    const auto taps = make_all_taps<float>(input.sizes, result.sizes, mode, align_corners, scales);
    return with_width(input.dtype, [&]<class T>(T) {
      copy_planes(taps, planes, input.as<const T>(), result.as<T>());
    });
  }
  with_dtype<Floating>(input.dtype, [&]<class T>(T) {
    using A = Weight<T>;
    const auto [d, h, w] = make_all_taps<A>(input.sizes, result.sizes, mode, align_corners, scales);
    resize_planes(make_plan<A>(planes, forward_axis(d), forward_axis(h), forward_axis(w)),
                  input.as<T>(), result.as<T>());
  });
}

void resample_backward(const View& result, const View& grad_output, IntSpan, std::string_view mode,
                       bool align_corners, double scale_d, double scale_h, double scale_w) {
  if (result.numel == 0) return;
  if (mode == "nearest") mode = "nearest-whole";  // as in PyTorch, whatever the result was made by
  const double scales[] = {scale_d, scale_h, scale_w};
  with_dtype<Floating>(result.dtype, [&]<class T>(T) {
    using A = Weight<T>;
    const auto [d, h, w] =
        make_all_taps<A>(result.sizes, grad_output.sizes, mode, align_corners, scales);
    resize_planes(make_plan<A>(result.sizes[0] * result.sizes[1], backward_axis(d),
                               backward_axis(h), backward_axis(w)),
                  grad_output.as<T>(), result.as<T>());
  });
}

}  // namespace taeda::cpu
