// 3x3 convolutions with stride 1 by F(2x2, 3x3) (Lavin and Gray 2016):
//
//   y = A' [ (G w G') * (B' x B) ] A     for each tile of 2x2 results and its 4x4 inputs
//
// and its adjoints. Each of the 16 elements of a tile is a matrix product over channels (tiles, for
// the gradient of w), so 16 multiplications do what takes 36 directly. The transforms only add and
// halve: the result's rounding error stays about that of the direct sum (docs/notes/accuracy.md).
// The batch's tiles are taken in chunks whose transforms fit the cache; a chunk's length depends on
// the sizes alone.
#include <algorithm>

#include "base/parallel.h"
#include "kernels/cpu/conv/conv_backends.h"
#include "kernels/cpu/gemm/sgemm.h"
#include "kernels/cpu/simd/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_winograd.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using V = Vec<float>;
constexpr int64_t kLanes = V::size();
constexpr int kTileElements = 16;

// a'm for the four matrices of the algorithm, on vectors of tiles (or of filters).
TD_FN void input_side(V y[4], V a, V b, V c, V d) {
  y[0] = a - c, y[1] = b + c, y[2] = c - b, y[3] = b - d;
}
TD_FN void filter_side(V y[4], V a, V b, V c) {
  const V outer = (a + c) * V(0.5f), middle = b * V(0.5f);
  y[0] = a, y[1] = outer + middle, y[2] = outer - middle, y[3] = c;
}
TD_FN void filter_adjoint(V y[3], V a, V b, V c, V d) {
  const V sum = (b + c) * V(0.5f);
  y[0] = a + sum, y[1] = (b - c) * V(0.5f), y[2] = sum + d;
}
TD_FN void output_side(V y[2], V a, V b, V c, V d) { y[0] = a + b + c, y[1] = b - c - d; }
TD_FN void output_adjoint(V y[4], V a, V b) { y[0] = a, y[1] = a + b, y[2] = a - b, y[3] = -b; }

// Images of one array, rows dense.
struct Images {
  float* data;
  int64_t sample_stride, channel_stride, channels, height, width;
  const float* end;  // of what may be read after any image
  bool dense;        // so that an image lies between others
};
Images images_of(const ConvArray& a) {
  float* data = reinterpret_cast<float*>(a.data);
  const int64_t plane = a.sizes[2] * a.sizes[3];
  return {data,
          a.strides[0],
          a.strides[1],
          a.sizes[1],
          a.sizes[2],
          a.sizes[3],
          data + a.numel(),
          a.strides[1] == plane && a.strides[0] == plane * a.sizes[1]};
}

// Columns [start, start + 2 kLanes) of a row of an image, even ones and odd ones apart; zero
// outside of the image.
struct Columns {
  Mask<float> even, odd;  // those inside
  Columns(int64_t start, int64_t width) {
    const V::Tag d;
    const V first(static_cast<float>(start));
    const V at = first + V(hn::Iota(d, 0.0f)) + V(hn::Iota(d, 0.0f));
    const V w(static_cast<float>(width));
    even = (at >= V(0.0f)) & (at < w);
    odd = (at >= V(-1.0f)) & (at < w - V(1.0f));
  }
};
TD_FN void read_columns(V& even, V& odd, const Images& x, const float* image, int64_t row,
                        int64_t start, const Columns& columns) {
  if (row < 0 || row >= x.height) {
    even = odd = V(0.0f);
    return;
  }
  const float* from = image + row * x.width + start;
  const float* low = x.dense ? x.data : image;
  const float* high = x.dense ? x.end : image + x.height * x.width;
  if (from >= low && from + 2 * kLanes <= high) {
    hn::LoadInterleaved2(V::Tag(), from, even.raw, odd.raw);
  } else {
    float copy[2 * kLanes];
    for (int64_t i = 0; i < 2 * kLanes; i++) {
      const int64_t column = start + i;
      copy[i] = column < 0 || column >= x.width ? 0 : from[i];
    }
    hn::LoadInterleaved2(V::Tag(), copy, even.raw, odd.raw);
  }
  even = select(columns.even, even, V(0.0f));
  odd = select(columns.odd, odd, V(0.0f));
}

// Tiles of 2x2 of the results.
struct Tiles {
  int64_t down, across;
  int64_t per_sample() const { return down * across; }
};

// Calls f(sample, tile row, tile column, length, offset) for runs of at most kLanes tiles of a row.
// Where a row ends, tiles before are done again rather than few of them: storing a part of a vector
// takes much longer.
template <class F>
TD_FN void for_each_run(const Tiles& tiles, int64_t begin, int64_t end, const F& f) {
  for (int64_t t = begin; t < end;) {
    const int64_t in_sample = t % tiles.per_sample(), column = in_sample % tiles.across;
    const int64_t n = std::min({kLanes, tiles.across - column, end - t});
    const int64_t again = std::min({kLanes - n, column, t - begin});
    f(t / tiles.per_sample(), in_sample / tiles.across, column - again, n + again,
      t - again - begin);
    t += n;
  }
}
TD_FN void store_first(float* p, V v, int64_t n) { n >= kLanes ? store(p, v) : store_n(p, v, n); }

// The 16 elements of a chunk: [element][channel][tile].
struct Chunk {
  float* data;
  int64_t element_stride, tiles;
  float* at(int element, int64_t channel) const {
    return data + element * element_stride + channel * tiles;
  }
  // How many elements a run of n tiles stores: the next run overwrites what is too much.
  int64_t stored(int64_t n, int64_t offset) const {
    return std::max(n, std::min(kLanes, tiles - offset));
  }
};

// B' x B of tiles [begin, end) of one channel; (row, column) is tile 0's corner in the image.
void transform_input(const Chunk& to, const Images& x, const Tiles& tiles, int64_t channel,
                     int64_t begin, int64_t end, int64_t pad_row, int64_t pad_column) {
  for_each_run(tiles, begin, end, [&](int64_t s, int64_t i, int64_t j, int64_t n, int64_t at) {
    const float* image = x.data + s * x.sample_stride + channel * x.channel_stride;
    V d[4][4];
    const int64_t start = 2 * j - pad_column;
    const Columns left(start, x.width), right(start + 2, x.width);
    for (int64_t a = 0; a < 4; a++) {
      const int64_t row = 2 * i + a - pad_row;
      read_columns(d[a][0], d[a][1], x, image, row, start, left);
      read_columns(d[a][2], d[a][3], x, image, row, start + 2, right);
    }
    V v[4][4];
    for (int b = 0; b < 4; b++) {
      V column[4];
      input_side(column, d[0][b], d[1][b], d[2][b], d[3][b]);
      for (int a = 0; a < 4; a++) v[a][b] = column[a];
    }
    const int64_t stored = to.stored(n, at);
    for (int a = 0; a < 4; a++) {
      V out[4];
      input_side(out, v[a][0], v[a][1], v[a][2], v[a][3]);
      for (int b = 0; b < 4; b++) store_first(to.at(4 * a + b, channel) + at, out[b], stored);
    }
  });
}

// A gy A' of tiles [begin, end) of one channel.
void transform_gradient(const Chunk& to, const Images& gy, const Tiles& tiles, int64_t channel,
                        int64_t begin, int64_t end) {
  for_each_run(tiles, begin, end, [&](int64_t s, int64_t i, int64_t j, int64_t n, int64_t at) {
    const float* image = gy.data + s * gy.sample_stride + channel * gy.channel_stride;
    V d[2][2], v[4][2];
    const Columns columns(2 * j, gy.width);
    for (int64_t a = 0; a < 2; a++)
      read_columns(d[a][0], d[a][1], gy, image, 2 * i + a, 2 * j, columns);
    for (int b = 0; b < 2; b++) {
      V column[4];
      output_adjoint(column, d[0][b], d[1][b]);
      for (int a = 0; a < 4; a++) v[a][b] = column[a];
    }
    const int64_t stored = to.stored(n, at);
    for (int a = 0; a < 4; a++) {
      V out[4];
      output_adjoint(out, v[a][0], v[a][1]);
      for (int b = 0; b < 4; b++) store_first(to.at(4 * a + b, channel) + at, out[b], stored);
    }
  });
}

// y = A' m A + bias of tiles [begin, end) of one channel.
void transform_output(const Images& y, const Chunk& m, const Tiles& tiles, int64_t channel,
                      int64_t begin, int64_t end, float bias) {
  float row[2 * kLanes];
  for_each_run(tiles, begin, end, [&](int64_t s, int64_t i, int64_t j, int64_t n, int64_t at) {
    float* image = y.data + s * y.sample_stride + channel * y.channel_stride;
    V v[2][4];
    for (int b = 0; b < 4; b++) {
      V column[2], in[4];
      for (int a = 0; a < 4; a++) in[a] = load(m.at(4 * a + b, channel) + at);  // or other tiles'
      output_side(column, in[0], in[1], in[2], in[3]);
      v[0][b] = column[0], v[1][b] = column[1];
    }
    const int64_t count = std::min(2 * n, y.width - 2 * j);
    for (int64_t a = 0; a < std::min<int64_t>(2, y.height - 2 * i); a++) {
      V out[2];
      output_side(out, v[a][0], v[a][1], v[a][2], v[a][3]);
      const V even = out[0] + V(bias), odd = out[1] + V(bias);
      hn::StoreInterleaved2(even.raw, odd.raw, V::Tag(), row);
      float* target = image + (2 * i + a) * y.width + 2 * j;
      store_first(target, load(row), count);
      if (count > kLanes) store(target + count - kLanes, load(row + count - kLanes));
    }
  });
}

// u[element][f] = G w G' of filters f; `flipped` turns them by 180 degrees.
void transform_filters(float* u, int64_t element_stride, const float* w, int64_t begin, int64_t end,
                       bool flipped) {
  for (int64_t f = begin; f < end; f += kLanes) {
    const int64_t n = std::min(kLanes, end - f);
    float taps[9][kLanes] = {};
    for (int64_t i = 0; i < n; i++)
      for (int64_t t = 0; t < 9; t++) taps[flipped ? 8 - t : t][i] = w[(f + i) * 9 + t];
    V v[4][3];
    for (int b = 0; b < 3; b++) {
      V column[4];
      filter_side(column, load(taps[b]), load(taps[3 + b]), load(taps[6 + b]));
      for (int a = 0; a < 4; a++) v[a][b] = column[a];
    }
    for (int a = 0; a < 4; a++) {
      V out[4];
      filter_side(out, v[a][0], v[a][1], v[a][2]);
      for (int b = 0; b < 4; b++) store_first(u + (4 * a + b) * element_stride + f, out[b], n);
    }
  }
}

// gw = G' u G.
void transform_filter_gradients(float* gw, const float* u, int64_t element_stride, int64_t begin,
                                int64_t end) {
  for (int64_t f = begin; f < end; f += kLanes) {
    const int64_t n = std::min(kLanes, end - f);
    V v[3][4];
    for (int b = 0; b < 4; b++) {
      V column[3], in[4];
      for (int a = 0; a < 4; a++) in[a] = load_n(u + (4 * a + b) * element_stride + f, n);
      filter_adjoint(column, in[0], in[1], in[2], in[3]);
      for (int a = 0; a < 3; a++) v[a][b] = column[a];
    }
    float taps[9][kLanes];
    for (int a = 0; a < 3; a++) {
      V out[3];
      filter_adjoint(out, v[a][0], v[a][1], v[a][2], v[a][3]);
      for (int b = 0; b < 3; b++) store(taps[3 * a + b], out[b]);
    }
    for (int64_t i = 0; i < n; i++)
      for (int64_t t = 0; t < 9; t++) gw[(f + i) * 9 + t] = taps[t][i];
  }
}

constexpr int64_t kPad = 48;  // floats between elements, against strides that are powers of two
constexpr int64_t kChunkFloats = int64_t{1} << 20;  // of both transforms
constexpr int64_t kMinTiles = 384;                  // that are worth packing the other operand
constexpr int64_t kFilterGrain = 1024;

int64_t chunk_tiles(int64_t total, int64_t channels) {
  const int64_t most = std::max(kMinTiles, kChunkFloats / (kTileElements * channels));
  const int64_t chunks = (total + most - 1) / most;
  return ((total + chunks - 1) / chunks + 31) / 32 * 32;  // no odd columns in the products
}

// The products of all elements as tasks: C[element] (rows x columns), many rows in halves.
template <class Make>
void multiply_elements(int64_t rows, const Make& make) {
  const int64_t length = rows > 256 ? (rows + 1) / 2 : rows;
  const int64_t count = (rows + length - 1) / length;
  parallel_for(0, kTileElements * count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t row = i % count * length;
      sgemm(make(static_cast<int>(i / count), row, std::min(length, rows - row)), false);
    }
  });
}

// y from x: a forward convolution, or the input gradient with y the gradient of x, x that of y and
// the filters flipped and transposed.
void convolve(const ConvProblem& p, const View& bias, bool backward) {
  const Images x = images_of(backward ? p.y : p.x), y = images_of(backward ? p.x : p.y);
  const int64_t pad_row = backward ? 2 - p.padding[0] : p.padding[0],
                pad_column = backward ? 2 - p.padding[1] : p.padding[1];
  const int64_t filters = p.w.numel() / 9, in_filters = p.w.sizes[1];
  const Scratch<float> u(kTileElements * (filters + kPad));
  const int64_t u_stride = filters + kPad;
  parallel_for(0, filters, kFilterGrain, [&](int64_t begin, int64_t end) {
    transform_filters(u.data(), u_stride, reinterpret_cast<const float*>(p.w.data), begin, end,
                      backward);
  });
  const Tiles tiles{(y.height + 1) / 2, (y.width + 1) / 2};
  const int64_t total = p.samples() * tiles.per_sample(),
                length = chunk_tiles(total, x.channels + y.channels);
  const Scratch<float> v(kTileElements * (x.channels * length + kPad)),
      m(kTileElements * (y.channels * length + kPad));
  for (int64_t begin = 0; begin < total; begin += length) {
    const int64_t end = std::min(total, begin + length), n = end - begin;
    const Chunk in{v.data(), x.channels * n + kPad, n}, out{m.data(), y.channels * n + kPad, n};
    const int64_t grain = std::max<int64_t>(1, 2048 / n);
    parallel_for(0, x.channels, grain, [&](int64_t c, int64_t c_end) {
      for (; c < c_end; c++) transform_input(in, x, tiles, c, begin, end, pad_row, pad_column);
    });
    multiply_elements(y.channels, [&](int element, int64_t row, int64_t rows) {
      const float* filter = u.data() + element * u_stride;
      const int64_t a_row = backward ? 1 : in_filters, a_col = backward ? in_filters : 1;
      return Sgemm{rows,
                   n,
                   x.channels,
                   out.at(element, row),
                   n,
                   1,
                   filter + row * a_row,
                   a_row,
                   a_col,
                   in.at(element, 0),
                   n,
                   1};
    });
    parallel_for(0, y.channels, grain, [&](int64_t c, int64_t c_end) {
      for (; c < c_end; c++)
        transform_output(y, out, tiles, c, begin, end,
                         bias.present ? bias.as<float>()[c * bias.strides[0]] : 0.0f);
    });
  }
}

void weight_gradient(const ConvProblem& p) {
  const Images x = images_of(p.x), gy = images_of(p.y);
  const int64_t filters = p.w.numel() / 9, u_stride = filters + kPad;
  const Scratch<float> u(kTileElements * u_stride);
  const Tiles tiles{(gy.height + 1) / 2, (gy.width + 1) / 2};
  const int64_t total = p.samples() * tiles.per_sample(),
                length = chunk_tiles(total, x.channels + gy.channels);
  const Scratch<float> v(kTileElements * (x.channels * length + kPad)),
      m(kTileElements * (gy.channels * length + kPad));
  for (int64_t begin = 0; begin < total; begin += length) {
    const int64_t end = std::min(total, begin + length), n = end - begin;
    const Chunk in{v.data(), x.channels * n + kPad, n}, out{m.data(), gy.channels * n + kPad, n};
    parallel_for(0, x.channels + gy.channels, std::max<int64_t>(1, 2048 / n),
                 [&](int64_t c, int64_t c_end) {
                   for (; c < c_end; c++) {
                     if (c < x.channels)
                       transform_input(in, x, tiles, c, begin, end, p.padding[0], p.padding[1]);
                     else
                       transform_gradient(out, gy, tiles, c - x.channels, begin, end);
                   }
                 });
    multiply_elements(gy.channels, [&](int element, int64_t row, int64_t rows) {
      return Sgemm{rows,
                   x.channels,
                   n,
                   u.data() + element * u_stride + row * x.channels,
                   x.channels,
                   1,
                   out.at(element, row),
                   n,
                   1,
                   in.at(element, 0),
                   1,
                   n,
                   1,
                   begin == 0 ? 0.0f : 1.0f};
    });
  }
  parallel_for(0, filters, kFilterGrain, [&](int64_t begin, int64_t end) {
    transform_filter_gradients(reinterpret_cast<float*>(p.w.data), u.data(), u_stride, begin, end);
  });
}

}  // namespace

bool has_vectors() { return kLanes >= 8; }
void winograd_forward(const ConvProblem& p, const View& bias) { convolve(p, bias, false); }
void winograd_input_gradient(const ConvProblem& p) { convolve(p, {}, true); }
void winograd_weight_gradient(const ConvProblem& p) { weight_gradient(p); }

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(has_vectors);
HWY_EXPORT(winograd_forward);
HWY_EXPORT(winograd_input_gradient);
HWY_EXPORT(winograd_weight_gradient);

bool use_winograd(const ConvProblem& p, bool weight_gradient) {
  if (p.x.dtype != DType::kFloat32 || p.spatial() != 2 || p.groups != 1) return false;
  for (size_t i = 0; i < 2; i++) {
    if (p.w.sizes[i + 2] != 3 || p.stride[i] != 1 || p.dilation[i] != 1 || p.padding[i] > 2)
      return false;
  }
  if (!HWY_DYNAMIC_DISPATCH(has_vectors)()) return false;
  // Cycles for a tile: of the products, of the transforms by channel, which work on rows of tiles,
  // and its share of those of the filters (measured with AVX-512).
  const double in = static_cast<double>(p.x.sizes[1]), out = static_cast<double>(p.y.sizes[1]);
  const int64_t across = (p.y.sizes[3] + 1) / 2, vectors = (across + 15) / 16;
  const double tiles = static_cast<double>(p.samples() * ((p.y.sizes[2] + 1) / 2) * across);
  const double full = static_cast<double>(across) / static_cast<double>(16 * vectors);
  const double cost = 1.1 * in * out + 20 * (in + out) / full + 100 * in * out / tiles;
  // oneDNN's weight gradients are slower than its other kernels.
  return cost < (weight_gradient ? 2.4 : 2.1) * in * out;
}
void winograd_conv_forward(const ConvProblem& p, const View& bias) {
  HWY_DYNAMIC_DISPATCH(winograd_forward)(p, bias);
}
void winograd_conv_input_gradient(const ConvProblem& p) {
  HWY_DYNAMIC_DISPATCH(winograd_input_gradient)(p);
}
void winograd_conv_weight_gradient(const ConvProblem& p) {
  HWY_DYNAMIC_DISPATCH(winograd_weight_gradient)(p);
}

}  // namespace taeda::cpu
#endif
