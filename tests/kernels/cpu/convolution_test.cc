#include "kernels/cpu/conv/convolution.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/parallel.h"
#include "kernels/cpu/conv/conv_backends.h"

namespace taeda::cpu {
namespace {

int64_t product(IntSpan sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

template <class T>
struct Array {
  std::vector<int64_t> sizes, strides;
  std::vector<T> data;

  Array(std::vector<int64_t> shape, bool channels_last = false)
      : sizes(std::move(shape)), strides(sizes.size()) {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (channels_last && sizes.size() > 2)
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;)
      strides[order[i]] = stride, stride *= std::max<int64_t>(sizes[order[i]], 1);
    data.resize(static_cast<size_t>(product(sizes)));
  }
  void randomise(std::mt19937& rng) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (T& v : data) v = T(uniform(rng));
  }
  View view() { return {data.data(), kDTypeOf<T>, sizes, strides, product(sizes), true}; }
};

struct Case {
  int64_t n, c, o, groups;
  std::vector<int64_t> in, kernel, stride, padding, dilation;
  bool channels_last = false;
};

// Calls f(n, o, c within the group, x's offset, w's offset, y's offset) for every multiplication.
template <class T, class F>
void for_each_term(const Case& t, const Array<T>& x, const Array<T>& w, const Array<T>& y,
                   const F& f) {
  const int64_t in_group = t.c / t.groups, out_group = t.o / t.groups;
  const int64_t positions = product(IntSpan(y.sizes).slice(2, y.sizes.size() - 2)),
                taps = product(t.kernel);
  for (int64_t n = 0; n < t.n; n++)
    for (int64_t o = 0; o < t.o; o++)
      for (int64_t p = 0; p < positions; p++)
        for (int64_t c = 0; c < in_group; c++)
          for (int64_t k = 0; k < taps; k++) {
            const int64_t channel = o / out_group * in_group + c;
            int64_t xo = n * x.strides[0] + channel * x.strides[1],
                    wo = o * w.strides[0] + c * w.strides[1];
            int64_t yo = n * y.strides[0] + o * y.strides[1], prest = p, krest = k;
            bool inside = true;
            for (size_t d = t.in.size(); d-- > 0;) {
              const int64_t py = prest % y.sizes[d + 2], kd = krest % t.kernel[d];
              prest /= y.sizes[d + 2], krest /= t.kernel[d];
              const int64_t px = py * t.stride[d] + kd * t.dilation[d] - t.padding[d];
              inside = inside && px >= 0 && px < t.in[d];
              xo += px * x.strides[d + 2], wo += kd * w.strides[d + 2], yo += py * y.strides[d + 2];
            }
            if (inside) f(o, xo, wo, yo);
          }
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& want, double tolerance,
                 const char* what) {
  double scale = 1;
  for (const double v : want) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < got.size(); i++)
    ASSERT_NEAR(double(got[i]), want[i], tolerance * scale) << what << " at " << i;
}

template <class T>
void check(const Case& t, double tolerance) {
  std::mt19937 rng(3);
  const auto shape = [](int64_t a, int64_t b, const std::vector<int64_t>& rest) {
    std::vector<int64_t> s{a, b};
    s.insert(s.end(), rest.begin(), rest.end());
    return s;
  };
  std::vector<int64_t> out;
  for (size_t d = 0; d < t.in.size(); d++)
    out.push_back(
        (t.in[d] + 2 * t.padding[d] - t.dilation[d] * (t.kernel[d] - 1) - 1) / t.stride[d] + 1);
  Array<T> x(shape(t.n, t.c, t.in), t.channels_last), w(shape(t.o, t.c / t.groups, t.kernel));
  Array<T> y(shape(t.n, t.o, out), t.channels_last), b({t.o}), gx = x, gw = w;
  for (Array<T>* a : {&x, &w, &b}) a->randomise(rng);
  const ConvGeometry g{t.stride, t.padding, t.dilation, t.groups};

  std::vector<double> want(y.data.size());
  for (int64_t i = 0; i < t.n * t.o; i++)
    for (int64_t p = 0; p < product(out); p++) {
      int64_t at = i / t.o * y.strides[0] + i % t.o * y.strides[1], rest = p;
      for (size_t d = out.size(); d-- > 0; rest /= out[d]) at += rest % out[d] * y.strides[d + 2];
      want[static_cast<size_t>(at)] = double(b.data[static_cast<size_t>(i % t.o)]);
    }
  for_each_term(t, x, w, y, [&](int64_t, int64_t xo, int64_t wo, int64_t yo) {
    want[static_cast<size_t>(yo)] +=
        double(x.data[static_cast<size_t>(xo)]) * double(w.data[static_cast<size_t>(wo)]);
  });
  convolution_forward(y.view(), x.view(), w.view(), b.view(), g);
  expect_near(y.data, want, tolerance, "forward");

  Array<T> gy = y;
  gy.randomise(rng);
  std::vector<double> want_x(x.data.size()), want_w(w.data.size());
  for_each_term(t, x, w, y, [&](int64_t, int64_t xo, int64_t wo, int64_t yo) {
    const double g0 = double(gy.data[static_cast<size_t>(yo)]);
    want_x[static_cast<size_t>(xo)] += g0 * double(w.data[static_cast<size_t>(wo)]);
    want_w[static_cast<size_t>(wo)] += g0 * double(x.data[static_cast<size_t>(xo)]);
  });
  convolution_input_gradient(gx.view(), gy.view(), w.view(), g);
  expect_near(gx.data, want_x, tolerance, "input gradient");
  convolution_weight_gradient(gw.view(), gy.view(), x.view(), g);
  expect_near(gw.data, want_w, tolerance, "weight gradient");
}

const Case kCases[] = {
    {2, 3, 5, 1, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 3, 5, 1, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, true},
    {3, 4, 6, 2, {9, 8}, {3, 2}, {2, 1}, {1, 0}, {1, 2}},
    {3, 4, 6, 2, {9, 8}, {3, 2}, {2, 1}, {1, 0}, {1, 2}, true},
    {1, 6, 6, 6, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {5, 16, 32, 1, {8, 8}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {2, 3, 4, 1, {11}, {3}, {2}, {1}, {2}},
    {2, 2, 3, 1, {4, 5, 6}, {2, 3, 2}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}},
    {1, 1, 1, 1, {3, 3}, {3, 3}, {5, 5}, {2, 2}, {1, 1}},
    {3, 16, 32, 1, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {3, 8, 16, 1, {6, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {2, 16, 24, 1, {3, 4, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {21, 1, 8, 1, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
};

TEST(Convolution, Float32) {
  for (const Case& t : kCases) check<float>(t, 1e-5);
}
TEST(Convolution, Float64) {
  for (const Case& t : kCases) check<double>(t, 1e-13);
}
TEST(Convolution, BFloat16) {
  if (!onednn_convolves(DType::kBFloat16)) GTEST_SKIP() << "this CPU has no fast bfloat16";
  for (const Case& t : kCases) check<BFloat16>(t, 2e-2);
}
// Enough work for one sample that its channels are cut.
TEST(Convolution, ChannelParts) {
  check<float>({1, 64, 80, 1, {24, 24}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1e-5);
  check<float>({1, 64, 64, 4, {32, 32}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1e-5);
}

Array<double> widened(const Array<float>& a) {
  Array<double> out(a.sizes);
  for (size_t i = 0; i < a.data.size(); i++) out.data[i] = double(a.data[i]);
  return out;
}

// Winograd's algorithm at sizes for which it would not be chosen, against double precision.
void check_winograd(int64_t n, int64_t c, int64_t o, std::vector<int64_t> in,
                    std::vector<int64_t> padding) {
  std::mt19937 rng(5);
  Array<float> x({n, c, in[0], in[1]}), w({o, c, 3, 3}), b({o});
  Array<float> gy({n, o, in[0] + 2 * padding[0] - 2, in[1] + 2 * padding[1] - 2});
  for (Array<float>* a : {&x, &w, &b, &gy}) a->randomise(rng);
  Array<double> xd = widened(x), wd = widened(w), bd = widened(b), gyd = widened(gy);
  const std::vector<int64_t> ones{1, 1};
  const ConvGeometry g{ones, padding, ones, 1};
  Array<float> y = gy, gx = x, gw = w;
  Array<double> y_want = gyd, gx_want = xd, gw_want = wd;
  winograd_conv_forward(ConvProblem(x.view(), w.view(), y.view(), g), b.view());
  winograd_conv_input_gradient(ConvProblem(gx.view(), w.view(), gy.view(), g));
  winograd_conv_weight_gradient(ConvProblem(x.view(), gw.view(), gy.view(), g));
  convolution_forward(y_want.view(), xd.view(), wd.view(), bd.view(), g);
  convolution_input_gradient(gx_want.view(), gyd.view(), wd.view(), g);
  convolution_weight_gradient(gw_want.view(), gyd.view(), xd.view(), g);
  expect_near(y.data, y_want.data, 1e-6, "forward");
  expect_near(gx.data, gx_want.data, 1e-6, "input gradient");
  expect_near(gw.data, gw_want.data, 1e-6, "weight gradient");
}
TEST(Convolution, Winograd) {
  check_winograd(1, 1, 1, {3, 3}, {0, 0});
  check_winograd(2, 3, 5, {7, 7}, {1, 1});
  check_winograd(3, 17, 12, {12, 31}, {1, 1});  // one run of 16 tiles and an odd column
  check_winograd(2, 5, 7, {9, 70}, {2, 0});
  check_winograd(2, 4, 3, {1, 2}, {1, 2});
  check_winograd(5, 70, 65, {29, 28}, {1, 1});  // several chunks of tiles
}
// Few channels a group: depthwise convolutions and first layers.
TEST(Convolution, Direct) {
  for (const int64_t width : {1, 7, 14, 31, 33, 64}) {
    for (const int64_t stride : {1, 2, 3}) {
      check<float>({3, 5, 5, 5, {9, width}, {3, 3}, {stride, stride}, {1, 1}, {1, 1}}, 1e-5);
      check<float>({2, 3, 7, 1, {9, width}, {5, 4}, {stride, stride}, {2, 2}, {1, 1}}, 1e-5);
    }
  }
  check<float>({2, 4, 12, 4, {10, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1e-5);  // multiplier 3
  check<float>({2, 4, 12, 4, {10, 11}, {2, 5}, {2, 1}, {0, 4}, {3, 2}}, 1e-5);
  check<float>({40, 6, 6, 3, {8, 6}, {3, 3}, {1, 2}, {2, 2}, {2, 2}}, 1e-5);  // parts of the batch
  check<float>({1, 3, 70, 1, {23, 40}, {7, 7}, {2, 2}, {3, 3}, {1, 1}}, 1e-5);
  check<float>({2, 24, 24, 24, {6, 5}, {1, 1}, {2, 3}, {1, 2}, {1, 1}}, 1e-5);
  check<float>({2, 2, 2, 2, {4, 4}, {3, 3}, {1, 1}, {6, 5}, {1, 1}}, 1e-5);  // more than it reaches
  check<float>({2, 20, 20, 20, {9, 10}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true}, 1e-5);
}
// Infinities stay where the filter takes them, and the vectors' unused lanes out of the sums.
TEST(Convolution, DirectNonFinite) {
  Array<float> x({1, 2, 3, 5}), w({2, 1, 3, 3}), y({1, 2, 3, 5}), gw = w;
  std::fill(w.data.begin(), w.data.end(), 1.0f);
  x.data[4] = std::numeric_limits<float>::infinity();  // channel 0, row 0, column 4
  const std::vector<int64_t> ones{1, 1};
  const ConvGeometry g{ones, ones, ones, 2};
  convolution_forward(y.view(), x.view(), w.view(), {}, g);
  for (int64_t i = 0; i < 30; i++)
    EXPECT_EQ(y.data[static_cast<size_t>(i)], i < 10 && i % 5 >= 3 ? x.data[4] : 0.0f) << i;
  std::fill(y.data.begin(), y.data.end(), 1.0f);
  convolution_weight_gradient(gw.view(), y.view(), x.view(), g);
  for (int64_t i = 0; i < 18; i++) {
    const bool reached = i < 9 && i / 3 <= 1 && i % 3 >= 1;
    EXPECT_EQ(gw.data[static_cast<size_t>(i)], reached ? x.data[4] : 0.0f) << i;
  }
}
TEST(Convolution, Pointwise) {
  // Samples side by side, with a shorter last group; then one by one.
  check<float>({19, 40, 33, 1, {7, 7}, {1, 1}, {1, 1}, {0, 0}, {1, 1}}, 1e-5);
  check<float>({3, 32, 50, 1, {23, 25}, {1, 1}, {1, 1}, {0, 0}, {1, 1}}, 1e-5);
  check<float>({2, 32, 40, 1, {3, 4, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}, 1e-5);
  check<float>({5, 40, 33, 1, {7, 7}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, true}, 1e-5);
  // Strides leave out positions, after the last ones taken too.
  check<float>({19, 40, 33, 1, {14, 14}, {1, 1}, {2, 2}, {0, 0}, {1, 1}}, 1e-5);
  check<float>({3, 32, 50, 1, {47, 54}, {1, 1}, {2, 3}, {0, 0}, {1, 1}}, 1e-5);
  check<float>({2, 32, 40, 1, {3, 4, 5}, {1, 1, 1}, {1, 3, 2}, {0, 0, 0}, {1, 1, 1}}, 1e-5);
  check<float>({4, 32, 40, 1, {17}, {1}, {4}, {0}, {1}}, 1e-5);
  for (const int64_t stride : {1, 2}) {
    Array<float> x({19, 40, 6 * stride + 1, 7 * stride}), w({33, 40, 1, 1}), y({19, 33, 7, 7});
    std::mt19937 rng(6);
    for (Array<float>* a : {&x, &y}) a->randomise(rng);
    const std::vector<int64_t> strides{stride, stride}, ones{1, 1}, zeros{0, 0};
    const ConvGeometry g{strides, zeros, ones, 1};
    Array<double> xd = widened(x), yd = widened(y), gw_want = widened(w);
    Array<float> gw = w;
    convolution_weight_gradient(gw.view(), y.view(), x.view(), g);
    convolution_weight_gradient(gw_want.view(), yd.view(), xd.view(), g);
    expect_near(gw.data, gw_want.data, 1e-6, "weight gradient");
  }
}

TEST(Convolution, WinogradIsChosen) {
  const Case t{2, 96, 80, 1, {29, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  check<float>(t, 1e-5);
  Array<float> x({2, 96, 29, 31}), w({80, 96, 3, 3}), y({2, 80, 29, 31}), narrow({2, 96, 4, 4});
  const ConvGeometry g{t.stride, t.padding, t.dilation, 1};
  EXPECT_TRUE(use_winograd(ConvProblem(x.view(), w.view(), y.view(), g), false) ||
              getenv("TAEDA_CPU") != nullptr);  // not in the baseline instruction set
  Array<float> half({2, 80, 15, 16}), small({2, 80, 4, 4});
  const std::vector<int64_t> twos{2, 2};
  EXPECT_FALSE(use_winograd(
      ConvProblem(x.view(), w.view(), half.view(), {twos, t.padding, t.dilation, 1}), false));
  EXPECT_FALSE(use_winograd(ConvProblem(narrow.view(), w.view(), small.view(), g), false));
}

void check_same_bits(int64_t in, int64_t out) {
  std::mt19937 rng(4);
  Array<float> x({37, in, 12, 12}), w({out, in, 3, 3}), b({out}), gy({37, out, 12, 12});
  for (Array<float>* a : {&x, &w, &b, &gy}) a->randomise(rng);
  const std::vector<int64_t> ones{1, 1};
  const int threads = get_num_threads();
  std::vector<std::vector<float>> results;
  for (const int count : {1, 3}) {
    set_num_threads(count);
    Array<float> y = gy, gx = x, gw = w;
    convolution_forward(y.view(), x.view(), w.view(), b.view(), {ones, ones, ones, 1});
    convolution_input_gradient(gx.view(), gy.view(), w.view(), {ones, ones, ones, 1});
    convolution_weight_gradient(gw.view(), gy.view(), x.view(), {ones, ones, ones, 1});
    for (const auto* a : {&y, &gx, &gw}) results.push_back(a->data);
  }
  set_num_threads(threads);
  for (size_t i = 0; i < 3; i++) EXPECT_EQ(results[i], results[i + 3]);
}
TEST(Convolution, SameBitsForAnyNumberOfThreads) {
  check_same_bits(8, 16);
  check_same_bits(160, 160);  // by Winograd's algorithm
}

}  // namespace
}  // namespace taeda::cpu
