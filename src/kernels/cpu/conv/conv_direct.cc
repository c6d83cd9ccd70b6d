// Convolutions of f32 images with few channels a group (depthwise ones, first layers) as sums over
// the taps of a filter:
//
//   y[o, i, j] = b[o] + sum over taps (c, k, l) of w[o, c, k, l] x[c, i s + k d - p, j s + l d - p]
//
// and its adjoints. Strips of a group's images are copied into the first-level cache with zeros
// around them and their columns apart by remainder modulo the stride; there every tap reads
// neighbours for neighbouring results, and main memory is read and written once. One 3x3 filter a
// group with stride 1 along rows needs no copy: it reads images where they lie. The gradient
// of x is again such a sum, where the stride is 1; that of w adds up products of gy with the
// shifted x.
#include <algorithm>
#include <vector>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "kernels/cpu/conv/conv_backends.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/simd/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_direct.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using V = Vec<float>;
constexpr int64_t kLanes = V::size();
constexpr int kRows = 4;                         // of the result, computed together
constexpr int kChannels = kLanes == 16 ? 4 : 2;  // likewise
constexpr int kGradientTaps = kLanes == 16 ? 6 : 4;
constexpr int64_t kStrip = 16;                   // rows of the result
constexpr int64_t kTaskWork = int64_t{1} << 16;  // multiplications worth a task

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Rows of whole vectors, an odd number of them against strides that are powers of two.
int64_t pitch_for(int64_t columns) { return (ceil_div(columns, kLanes) | 1) * kLanes; }

// Working copy of a strip of an image: row i is row i + top of the strip that starts at row 0;
// column j lies in phase (j + left) % phases at place (j + left) / phases.
struct Padded {
  int64_t phases, top, left;
  int64_t rows, pitch;  // of a phase
  int64_t phase_size() const { return rows * pitch; }
  int64_t size() const { return phases * phase_size(); }
};

// Memory is asked for this many floats ahead, into the next strips and images: what is computed
// between two strips is longer than the CPU looks ahead by itself.
constexpr int64_t kAhead = 2048;

void copy_row(const Padded& p, float* to, const float* row, int64_t width) {
  const int64_t n = std::min(width, p.pitch * p.phases - p.left);
  int64_t j = 0;
  if (p.phases == 1) {
    to += p.left;
    for (; j + kLanes <= n; j += kLanes) {
      __builtin_prefetch(row + kAhead + j);
      store(to + j, load(row + j));
    }
    if (j < n) store_n(to + j, load_n(row + j, n - j), n - j);
    return;
  }
  float* even = to + p.left % 2 * p.phase_size() + p.left / 2;
  float* odd = to + (p.left + 1) % 2 * p.phase_size() + (p.left + 1) / 2;
  V a, b;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    __builtin_prefetch(row + kAhead + j);
    __builtin_prefetch(row + kAhead + j + kLanes);
    hn::LoadInterleaved2(V::Tag(), row + j, a.raw, b.raw);
    store(even + j / 2, a);
    store(odd + j / 2, b);
  }
  if (j < n) {
    const int64_t rest = n - j;
    float pairs[2 * kLanes];
    store(pairs, load_n(row + j, std::min(kLanes, rest)));
    if (rest > kLanes) store(pairs + kLanes, load_n(row + j + kLanes, rest - kLanes));
    hn::LoadInterleaved2(V::Tag(), pairs, a.raw, b.raw);
    store_n(even + j / 2, a, (rest + 1) / 2);
    store_n(odd + j / 2, b, rest / 2);
  }
}

struct Images {
  float* data;
  int64_t sample_stride, channel_stride, height, width;
  explicit Images(const ConvArray& a)
      : data(reinterpret_cast<float*>(a.data)),
        sample_stride(a.strides[0]),
        channel_stride(a.strides[1]),
        height(a.sizes[2]),
        width(a.sizes[3]) {}
  float* at(int64_t sample, int64_t channel) const {
    return data + sample * sample_stride + channel * channel_stride;
  }
};

// Copies rows [first - top, first - top + count) of some channels; zeros outside of the image.
void copy_strip(const Padded& p, float* to, const Images& images, int64_t sample, int64_t channel,
                int64_t channels, int64_t first, int64_t count) {
  for (int64_t c = 0; c < channels; c++, to += p.size()) {
    const float* image = images.at(sample, channel + c);
    for (int64_t i = 0; i < count; i++) {
      const int64_t row = first - p.top + i;
      if (row >= 0 && row < images.height)
        copy_row(p, to + i * p.pitch, image + row * images.width, images.width);
      else
        for (int64_t f = 0; f < p.phases; f++)
          std::fill_n(to + f * p.phase_size() + i * p.pitch, p.pitch, 0.0f);
    }
  }
}

// Where results go (or gradients of results come from): `rows` rows of `columns`.
struct Target {
  float* data;
  int64_t channel_step, row_step, rows, columns;
};

// target[o, i, j] = start[o] + sum over t of w[o * count + t] from[offsets[t] + i * row_step + j]
template <int kOut>
void sum_taps(const Target& target, const float* from, int64_t row_step, const int64_t* offsets,
              const float* w, int64_t count, const float* start) {
  for (int64_t j = 0; j < target.columns; j += kLanes) {
    V sums[kOut][kRows];
#pragma GCC unroll 4
    for (int o = 0; o < kOut; o++)
#pragma GCC unroll 4
      for (V& sum : sums[o]) sum = V(start[o]);
    const auto add = [&](int64_t t) HWY_ATTR {
      const float* at = from + offsets[t] + j;
      V x[kRows];
#pragma GCC unroll 4
      for (int i = 0; i < kRows; i++) x[i] = load(at + i * row_step);
#pragma GCC unroll 4
      for (int o = 0; o < kOut; o++) {
        const V factor(w[o * count + t]);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; i++) sums[o][i] = fma(factor, x[i], sums[o][i]);
      }
    };
    for (int64_t t = 0; t < count; t++) add(t);
    const int64_t n = std::min(kLanes, target.columns - j);
#pragma GCC unroll 4
    for (int o = 0; o < kOut; o++) {
      float* to = target.data + o * target.channel_step + j;
#pragma GCC unroll 4
      for (int i = 0; i < kRows; i++) {
        if (i >= target.rows) break;
        if (n == kLanes)
          store(to + i * target.row_step, sums[o][i]);
        else
          store_n(to + i * target.row_step, sums[o][i], n);
      }
    }
  }
}

// Calls f(vector of x, row k of the filter, its column l, row i of the result) for the terms of a
// block of kRows rows and a 3x3 filter; every vector is read once.
template <int kStride, class Read, class F>
TD_FN void for_each_of_3x3(const float* from, int64_t pitch, const int64_t* offsets,
                           const Read& read, const F& f) {
#pragma GCC unroll 16
  for (int r = 0; r < (kRows - 1) * kStride + 3; r++) {
#pragma GCC unroll 3
    for (int l = 0; l < 3; l++) {
      const V x = read(from + offsets[l] + r * pitch);
#pragma GCC unroll 3
      for (int k = 0; k < 3; k++)
        if (r >= k && (r - k) % kStride == 0 && (r - k) / kStride < kRows)
          f(x, k, l, (r - k) / kStride);
    }
  }
}

// Writes columns j, j + 1, ... of the target's rows.
TD_FN void store_rows(const Target& target, int64_t j, const V* sums) {
  const int64_t n = std::min(kLanes, target.columns - j);
  float* to = target.data + j;
#pragma GCC unroll 4
  for (int i = 0; i < kRows; i++) {
    if (i >= target.rows) break;
    __builtin_prefetch(to + (i + 2 * kRows) * target.row_step, 1);
    if (n == kLanes)
      store(to + i * target.row_step, sums[i]);
    else
      store_n(to + i * target.row_step, sums[i], n);
  }
}

// A 3x3 filter in registers.
struct Filter {
  V factors[3][3];
  TD_FN explicit Filter(const float* w) {
#pragma GCC unroll 16
    for (int t = 0; t < 9; t++) factors[t / 3][t % 3] = V(w[t]);
  }
  // sum_taps for columns j, j + 1, ...: for_each_term(f) calls f(vector of x, row k of the filter,
  // its column l, row i of the target) for all terms.
  template <class ForEachTerm>
  TD_FN void sum(const Target& target, int64_t j, float start,
                 const ForEachTerm& for_each_term) const {
    V sums[kRows];
#pragma GCC unroll 4
    for (V& sum : sums) sum = V(start);
    for_each_term([&](V x, int k, int l, int i)
                      HWY_ATTR { sums[i] = fma(factors[k][l], x, sums[i]); });
    store_rows(target, j, sums);
  }
};

// From working memory.
template <int kStride>
void sum_strip(const Target& target, const float* from, int64_t pitch, const int64_t* offsets,
               const float* w, float start) {
  const Filter filter(w);
  for (int64_t j = 0; j < target.columns; j += kLanes)
    filter.sum(target, j, start, [&](const auto& f) HWY_ATTR {
      for_each_of_3x3<kStride>(
          from + j, pitch, offsets, [](const float* at) HWY_ATTR { return load(at); }, f);
    });
}

// An image whose columns a 3x3 filter reads where they are: lanes that lie outside are not read.
struct InPlace {
  const float* data;
  int64_t height, width, top, left, dilation;  // padding before rows and columns; of columns

  // Which lanes are inside, for each column of the filter.
  struct Inside {
    hn::Mask<V::Tag> columns[3];
  };
  TD_FN Inside inside(int64_t j) const {
    const V::Tag d;
    Inside lanes;
#pragma GCC unroll 3
    for (int l = 0; l < 3; l++) {
      const int64_t column = j + l * dilation - left;
      lanes.columns[l] = hn::And(hn::FirstN(d, clamp_lanes(width - column)),
                                 hn::Not(hn::FirstN(d, clamp_lanes(-column))));
    }
    return lanes;
  }

  // Calls f(vector of x, row k of the filter, its column l, row i of the result) for the terms of
  // rows first, ..., first + kRows - 1 and columns j, j + 1, ... of the result.
  template <class F>
  TD_FN void for_each_term(const Inside& lanes, int64_t first, int64_t j, const F& f) const {
    const V::Tag d;
#pragma GCC unroll 16
    for (int r = 0; r < kRows + 2; r++) {
      const int64_t row = first + r - top;
      if (row < 0 || row >= height) continue;
      const float* from = data + row * width + j - left;
      __builtin_prefetch(from + kAhead);
#pragma GCC unroll 3
      for (int l = 0; l < 3; l++) {
        const V x = hn::MaskedLoad(lanes.columns[l], d, from + l * dilation);
#pragma GCC unroll 3
        for (int k = 0; k < 3; k++)
          if (r >= k && r - k < kRows) f(x, k, l, r - k);
      }
    }
  }

 private:
  static TD_FN size_t clamp_lanes(int64_t n) {
    return static_cast<size_t>(std::clamp<int64_t>(n, 0, kLanes));
  }
};

// Calls f(lanes inside, row i, column j) for blocks of kRows rows and kLanes columns of a result.
// Those of narrow images go down columns, so that what depends on these is worked out once.
template <class F>
TD_FN void for_each_block(const InPlace& image, int64_t rows, int64_t columns, const F& f) {
  const int64_t band = columns <= kLanes ? rows : kRows;
  for (int64_t first = 0; first < rows; first += band) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      const InPlace::Inside lanes = image.inside(j);
      for (int64_t i = first; i < std::min(rows, first + band); i += kRows) f(lanes, i, j);
    }
  }
}

// From an image.
void sum_in_place(const Target& target, const InPlace& image, const float* w, float start) {
  const Filter filter(w);
  for_each_block(image, target.rows, target.columns,
                 [&](const InPlace::Inside& lanes, int64_t i, int64_t j) HWY_ATTR {
                   const Target block{target.data + i * target.row_step, target.channel_step,
                                      target.row_step, std::min<int64_t>(kRows, target.rows - i),
                                      target.columns};
                   filter.sum(block, j, start,
                              [&](const auto& f) HWY_ATTR { image.for_each_term(lanes, i, j, f); });
                 });
}

// Taps of a group: where they are in working memory.
struct Taps {
  std::vector<int64_t> offsets;
  int64_t stride_3x3 = 0;  // of rows, if they are those of one 3x3 filter whose rows are neighbours
};

// The same for any number of channels.
void sum_all_taps(Target target, int64_t channels, const float* from, int64_t row_step,
                  const Taps& taps, const float* w, const float* start) {
  const int64_t count = static_cast<int64_t>(taps.offsets.size());
  const int64_t* offsets = taps.offsets.data();
  const auto step = [&](int64_t n) {
    target.data += n * target.channel_step;
    w += n * count, start += n, channels -= n;
  };
  for (; channels >= kChannels; step(kChannels))
    sum_taps<kChannels>(target, from, row_step, offsets, w, count, start);
  for (; channels > 0; step(1)) {
    if (taps.stride_3x3 == 1)
      sum_strip<1>(target, from, row_step, offsets, w, *start);
    else if (taps.stride_3x3 == 2)
      sum_strip<2>(target, from, row_step / 2, offsets, w, *start);
    else
      sum_taps<1>(target, from, row_step, offsets, w, count, start);
  }
}

// The sizes of a convolution, and how its x is laid out in working memory. The adjoint of one with
// stride 1 is another: of gy, with the filters flipped and the channels of a group exchanged.
struct Direct {
  ConvProblem p;
  bool adjoint;
  int64_t groups, in, out;   // channels of a group
  int64_t kernel[2], count;  // of taps
  int64_t strip;             // rows of the result
  Padded padded;
  Taps taps;

  Direct(const ConvProblem& problem, bool is_adjoint)
      : p(problem),
        adjoint(is_adjoint),
        groups(p.groups),
        in(p.w.sizes[1]),
        out(p.w.sizes[0] / p.groups),
        kernel{p.w.sizes[2], p.w.sizes[3]} {
    if (adjoint) {
      std::swap(p.x, p.y);
      std::swap(in, out);
      for (size_t i = 0; i < 2; i++) p.padding[i] = (kernel[i] - 1) * p.dilation[i] - p.padding[i];
    }
    count = in * kernel[0] * kernel[1];
    strip = std::min(kStrip, round_up(p.y.sizes[2], kRows));
    // Rows of the image start at whole vectors, so that copies are aligned where images are.
    const int64_t left = round_up(p.padding[1], kLanes * p.stride[1]), shift = left - p.padding[1],
                  reach = (kernel[1] - 1) * p.dilation[1] + shift;
    padded = {p.stride[1], p.padding[0], left, rows_for(strip),
              pitch_for(reach / p.stride[1] + round_up(p.y.sizes[3], kLanes))};
    for_each_tap([&](int64_t c, int64_t k, int64_t l) {
      const int64_t column = l * p.dilation[1] + shift;
      taps.offsets.push_back(c * padded.size() + column % padded.phases * padded.phase_size() +
                             k * p.dilation[0] * padded.pitch + column / padded.phases);
    });
    const bool is_3x3 = in == 1 && kernel[0] == 3 && kernel[1] == 3 && p.dilation[0] == 1;
    if (is_3x3 && p.stride[0] <= 2) taps.stride_3x3 = p.stride[0];
  }
  template <class F>
  void for_each_tap(const F& f) const {
    for (int64_t c = 0; c < in; c++)
      for (int64_t k = 0; k < kernel[0]; k++)
        for (int64_t l = 0; l < kernel[1]; l++) f(c, k, l);
  }
  // The weight between channel o of the result and channel c of its group.
  float& filter(int64_t o, int64_t c, int64_t k, int64_t l) const {
    if (adjoint) {
      const int64_t first = o / out * in;
      k = kernel[0] - 1 - k, l = kernel[1] - 1 - l, o %= out;
      std::swap(o, c);
      o += first;
    }
    return reinterpret_cast<float*>(p.w.data)[o * p.w.strides[0] + c * p.w.strides[1] +
                                              k * p.w.strides[2] + l * p.w.strides[3]];
  }
  // What rows first, first + 1, ... of the result read.
  void copy(float* to, int64_t sample, int64_t group, int64_t first) const {
    copy_strip(padded, to, Images(p.x), sample, group * in, in, first * p.stride[0], padded.rows);
  }
  // Whether images need not be copied: single 3x3 filters read them by unaligned vectors.
  bool in_place() const {
    return kMaskedLoads && taps.stride_3x3 == 1 && p.stride[1] == 1 && out < kChannels;
  }
  InPlace image(int64_t sample, int64_t group) const {
    const Images x(p.x);
    return {x.at(sample, group), x.height, x.width, p.padding[0], p.padding[1], p.dilation[1]};
  }
  int64_t working_floats() const { return in_place() ? 0 : in * padded.size(); }
  // How many rows of working memory the first n rows of the result use.
  int64_t rows_for(int64_t n) const {
    return (n - 1) * p.stride[0] + (kernel[0] - 1) * p.dilation[0] + 1;
  }
};

// Calls f(working memory of zeros, unit) for `units` chunks of work of this many multiplications.
template <class F>
void for_each_unit(int64_t units, int64_t work, int64_t floats, const F& f) {
  const int64_t grain = std::max(ceil_div(kTaskWork, work), std::min<int64_t>(8, units / 16));
  parallel_for(0, units, grain, [&](int64_t i, int64_t end) {
    const Scratch<float> memory(floats);
    std::fill_n(memory.data(), floats, 0.0f);
    for (; i < end; i++) f(memory.data(), i);
  });
}

// Some channels of a group from its image.
void convolve_in_place(const Direct& d, int64_t sample, int64_t group, int64_t first,
                       int64_t channels, const float* w, const float* start) {
  const Images y(d.p.y);
  const InPlace image = d.image(sample, group);
  for (int64_t c = 0; c < channels; c++) {
    check_interrupt();
    sum_in_place({y.at(sample, first + c), y.channel_stride, y.width, y.height, y.width}, image,
                 w + c * d.count, start[c]);
  }
}

// y from x: a forward convolution or an input gradient.
void convolve(const Direct& d, const View& bias) {
  const ConvProblem& p = d.p;
  const Images y(p.y);
  std::vector<float> w, start;
  w.reserve(static_cast<size_t>(p.y.sizes[1] * d.count));
  start.reserve(static_cast<size_t>(p.y.sizes[1]));
  for (int64_t o = 0; o < p.y.sizes[1]; o++) {
    start.push_back(bias.present ? bias.as<float>()[o * bias.strides[0]] : 0.0f);
    d.for_each_tap([&](int64_t c, int64_t k, int64_t l) { w.push_back(d.filter(o, c, k, l)); });
  }
  // A few large images are shared out by channels.
  constexpr int64_t kFew = 16;
  const int64_t groups = p.samples() * d.groups,
                length =
                    groups >= kFew ? d.out : round_up(ceil_div(d.out * groups, kFew), kChannels),
                parts = ceil_div(d.out, length), row_step = p.stride[0] * d.padded.pitch;
  for_each_unit(groups * parts, length * d.count * y.height * y.width, d.working_floats(),
                [&](float* x, int64_t unit) {
                  const int64_t sample = unit / parts / d.groups, group = unit / parts % d.groups;
                  const int64_t first = group * d.out + unit % parts * length,
                                channels = std::min(length, (group + 1) * d.out - first);
                  if (d.in_place())
                    return convolve_in_place(d, sample, group, first, channels,
                                             w.data() + first * d.count, start.data() + first);
                  for (int64_t i = 0; i < y.height; i += kRows) {
                    if (i % d.strip == 0) {
                      check_interrupt();
                      d.copy(x, sample, group, i);
                    }
                    sum_all_taps({y.at(sample, first) + i * y.width, y.channel_stride, y.width,
                                  std::min<int64_t>(kRows, y.height - i), y.width},
                                 channels, x + i % d.strip * row_step, row_step, d.taps,
                                 w.data() + first * d.count, start.data() + first);
                  }
                });
}

double sum_of(V x) { return static_cast<double>(hn::GetLane(hn::SumOfLanes(V::Tag(), x.raw))); }

// sums[o * step + t] += sum over i, j of gy[o, i, j] x[offsets[t] + i * row_step + j]
template <int kOut, int kTaps>
void add_products(double* sums, int64_t step, const Target& gy, const float* x, int64_t row_step,
                  const int64_t* offsets, int64_t taps) {
  V total[kOut][kTaps];
#pragma GCC unroll 4
  for (auto& row : total)
#pragma GCC unroll 16
    for (V& sum : row) sum = V(0.0f);
  const auto add = [&](int64_t i, int64_t j, const auto& read) HWY_ATTR {
    V g[kOut];
#pragma GCC unroll 4
    for (int o = 0; o < kOut; o++) g[o] = read(gy.data + o * gy.channel_step + i * gy.row_step + j);
#pragma GCC unroll 16
    for (int t = 0; t < kTaps; t++) {
      const V value = read(x + i * row_step + j + offsets[t]);
#pragma GCC unroll 4
      for (int o = 0; o < kOut; o++) total[o][t] = fma(g[o], value, total[o][t]);
    }
  };
  for (int64_t i = 0; i < gy.rows; i++) {
    int64_t j = 0;
    for (; j + kLanes <= gy.columns; j += kLanes)
      add(i, j, [](const float* at) HWY_ATTR { return load(at); });
    const int64_t n = gy.columns - j;
    if (n > 0) add(i, j, [=](const float* at) HWY_ATTR { return load_n(at, n); });
  }
  for (int o = 0; o < kOut; o++)
    for (int t = 0; t < std::min<int64_t>(kTaps, taps); t++)
      sums[o * step + t] += sum_of(total[o][t]);
}

// totals[t] += the same for kRows rows at most and the 3x3 filter, lane by lane.
template <int kStride>
void add_products_3x3(float* totals, const Target& gy, const float* x, int64_t pitch,
                      const int64_t* offsets) {
  V total[3][3];
#pragma GCC unroll 16
  for (int t = 0; t < 9; t++) total[t / 3][t % 3] = load(totals + t * kLanes);
  // Nothing times infinity is not nothing: vectors that are not full are masked on both sides, and
  // rows beyond the gradient's do not count.
  const auto add = [&](int64_t j, const auto& read) HWY_ATTR {
    V g[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; i++) {
      const float* from = gy.data + i * gy.row_step + j;
      __builtin_prefetch(from + 2 * kRows * gy.row_step);
      g[i] = i < gy.rows ? read(from) : V(0.0f);
    }
    for_each_of_3x3<kStride>(x + j, pitch, offsets, read,
                             [&](V value, int k, int l, int i) HWY_ATTR {
                               if (i < gy.rows) total[k][l] = fma(g[i], value, total[k][l]);
                             });
  };
  int64_t j = 0;
  for (; j + kLanes <= gy.columns; j += kLanes)
    add(j, [](const float* at) HWY_ATTR { return load(at); });
  const int64_t n = gy.columns - j;
  if (n > 0) add(j, [=](const float* at) HWY_ATTR { return load_n(at, n); });
#pragma GCC unroll 16
  for (int t = 0; t < 9; t++) store(totals + t * kLanes, total[t / 3][t % 3]);
}

// The same from an image, for all rows of the gradient.
void add_products_in_place(float* totals, const Target& gy, const InPlace& image) {
  V total[3][3];
#pragma GCC unroll 16
  for (int t = 0; t < 9; t++) total[t / 3][t % 3] = load(totals + t * kLanes);
  for_each_block(image, gy.rows, gy.columns,
                 [&](const InPlace::Inside& lanes, int64_t first, int64_t j) HWY_ATTR {
                   const int64_t n = std::min(kLanes, gy.columns - j),
                                 rows = std::min<int64_t>(kRows, gy.rows - first);
                   V g[kRows];
#pragma GCC unroll 4
                   for (int i = 0; i < kRows; i++) {
                     const float* from = gy.data + (first + i) * gy.row_step + j;
                     __builtin_prefetch(from + 2 * kRows * gy.row_step);
                     g[i] = i >= rows ? V(0.0f) : n == kLanes ? load(from) : load_n(from, n);
                   }
                   // Nothing times infinity is not nothing: lanes and rows without a result must
                   // not count.
                   const Mask<float> counts{hn::FirstN(V::Tag(), static_cast<size_t>(n))};
                   image.for_each_term(lanes, first, j, [&](V x, int k, int l, int i) HWY_ATTR {
                     if (i < rows)
                       total[k][l] = select(counts, fma(g[i], x, total[k][l]), total[k][l]);
                   });
                 });
#pragma GCC unroll 16
  for (int t = 0; t < 9; t++) store(totals + t * kLanes, total[t / 3][t % 3]);
}

void add_image_3x3(float* totals, const Direct& d, int64_t sample, int64_t group) {
  const Images gy(d.p.y);
  add_products_in_place(totals,
                        {gy.at(sample, group), gy.channel_stride, gy.width, gy.height, gy.width},
                        d.image(sample, group));
}

void add_strip_3x3(float* totals, const Direct& d, Target gy, const float* x) {
  const auto add = d.taps.stride_3x3 == 1 ? add_products_3x3<1> : add_products_3x3<2>;
  for (; gy.rows > 0; gy.rows -= kRows) {
    add(totals, gy, x, d.padded.pitch, d.taps.offsets.data());
    gy.data += kRows * gy.row_step, x += kRows * d.taps.stride_3x3 * d.padded.pitch;
  }
}
// `offsets`: the taps', and more beyond their end.
void add_strip(double* sums, const Direct& d, Target gy, const float* x, const int64_t* offsets) {
  const int64_t row_step = d.p.stride[0] * d.padded.pitch;
  for (int64_t o = 0; o < d.out;) {
    const bool several = d.out - o >= kChannels;
    const int64_t step = several ? kGradientTaps : 9, channels = several ? kChannels : 1;
    const auto add = several ? add_products<kChannels, kGradientTaps> : add_products<1, 9>;
    for (int64_t t = 0; t < d.count; t += step)
      add(sums + o * d.count + t, d.count, gy, x, row_step, offsets + t, d.count - t);
    gy.data += channels * gy.channel_step, o += channels;
  }
}

// The weight gradient: parts of the batch give partial sums, which are added in order.
void weight_gradient(const ConvProblem& p) {
  const Direct d(p, false);
  const Images gy(p.y);
  constexpr int64_t kFew = 16;
  const int64_t length = d.groups >= kFew ? p.samples() : ceil_div(p.samples(), kFew),
                parts = ceil_div(p.samples(), length);
  // The list of taps goes on beyond its end, so that they can be taken by kGradientTaps or 9.
  std::vector<int64_t> offsets = d.taps.offsets;
  offsets.resize(offsets.size() + 9, 0);
  const bool single_3x3 = d.taps.stride_3x3 && d.out == 1, in_place = single_3x3 && d.in_place();
  std::vector<double> sums(static_cast<size_t>(parts * p.w.sizes[0] * d.count));
  for_each_unit(
      parts * d.groups, length * d.out * d.count * gy.height * gy.width,
      in_place ? 0 : d.in * d.padded.size(), [&](float* x, int64_t unit) {
        const int64_t part = unit / d.groups, group = unit % d.groups;
        double* const mine = sums.data() + (part * p.w.sizes[0] + group * d.out) * d.count;
        for (int64_t s = part * length; s < std::min(p.samples(), (part + 1) * length); s++) {
          float totals[9 * kLanes] = {};
          if (in_place) add_image_3x3(totals, d, s, group);
          for (int64_t i = 0; !in_place && i < gy.height; i += d.strip) {
            check_interrupt();
            d.copy(x, s, group, i);
            const Target from{gy.at(s, group * d.out) + i * gy.width, gy.channel_stride, gy.width,
                              std::min(d.strip, gy.height - i), gy.width};
            if (single_3x3)
              add_strip_3x3(totals, d, from, x);
            else
              add_strip(mine, d, from, x, offsets.data());
          }
          for (int64_t t = 0; single_3x3 && t < 9; t++)
            mine[t] += sum_of(load(totals + t * kLanes));
        }
      });
  const size_t filters = static_cast<size_t>(p.w.sizes[0] * d.count);
  size_t i = 0;
  for (int64_t o = 0; o < p.w.sizes[0]; o++)
    d.for_each_tap([&](int64_t c, int64_t k, int64_t l) {
      for (size_t other = i + filters; other < sums.size(); other += filters)
        sums[i] += sums[other];
      d.filter(o, c, k, l) = static_cast<float>(sums[i++]);
    });
}

}  // namespace

void direct_forward(const ConvProblem& p, const View& bias) { convolve(Direct(p, false), bias); }
void direct_input_gradient(const ConvProblem& p) { convolve(Direct(p, true), {}); }
void direct_weight_gradient(const ConvProblem& p) { weight_gradient(p); }

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(direct_forward);
HWY_EXPORT(direct_input_gradient);
HWY_EXPORT(direct_weight_gradient);

namespace {

constexpr int64_t kFew = 4;  // channels a group

bool dense_planes(const ConvArray& a) { return a.strides[3] == 1 && a.strides[2] == a.sizes[3]; }

// The copies of images must not be much larger than they are.
bool moderate_padding(const ConvProblem& p) {
  double copy = 1, images = 1;
  for (size_t i = 0; i < 2; i++) {
    const double reach = static_cast<double>((p.w.sizes[i + 2] - 1) * p.dilation[i]);
    copy *= static_cast<double>(std::max(p.x.sizes[i + 2], p.y.sizes[i + 2] * p.stride[i])) +
            reach + static_cast<double>(p.padding[i]);
    images *= static_cast<double>(p.x.sizes[i + 2]) + static_cast<double>(p.w.sizes[i + 2]) + 16;
  }
  return copy < 8 * images;
}

}  // namespace

bool use_direct(const ConvProblem& p) {
  constexpr int64_t kSmall = 64;  // positions below which working memory costs more than it saves
  return p.x.dtype == DType::kFloat32 && p.spatial() == 2 && p.stride[1] <= 2 &&
         p.w.sizes[1] <= kFew && p.y.sizes[2] > 1 && p.y.sizes[2] * p.y.sizes[3] >= kSmall &&
         dense_planes(p.x) && dense_planes(p.y) && moderate_padding(p);
}
bool use_direct_gradient(const ConvProblem& p, bool of_weight) {
  if (!use_direct(p) || p.w.sizes[0] > kFew * p.groups) return false;
  for (size_t i = 0; i < 2 && !of_weight; i++)
    if (p.stride[i] != 1 || p.padding[i] > (p.w.sizes[i + 2] - 1) * p.dilation[i]) return false;
  return true;
}
void direct_conv_forward(const ConvProblem& p, const View& bias) {
  HWY_DYNAMIC_DISPATCH(direct_forward)(p, bias);
}
void direct_conv_input_gradient(const ConvProblem& p) {
  HWY_DYNAMIC_DISPATCH(direct_input_gradient)(p);
}
void direct_conv_weight_gradient(const ConvProblem& p) {
  HWY_DYNAMIC_DISPATCH(direct_weight_gradient)(p);
}

}  // namespace taeda::cpu
#endif
