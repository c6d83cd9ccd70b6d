// Reductions, scans, softmax and sorting against plain double loops, over layouts and element
// types.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "kernels/cpu/pointwise/loop.h"
#include "kernels/view.h"
#include "op/_var.h"
#include "op/_vector_norm.h"
#include "op/amax.h"
#include "op/amin.h"
#include "op/argmax.h"
#include "op/argmin.h"
#include "op/cumsum.h"
#include "op/log_softmax.h"
#include "op/mean.h"
#include "op/softmax.h"
#include "op/sort.h"
#include "op/sum.h"

namespace taeda::cpu {
namespace {

// A tensor on the heap: sizes, strides and random values.
struct Array {
  DimVector sizes, strides;
  DType dtype = DType::kFloat32;
  std::vector<char> bytes;

  Array(DimVector sizes, DType dtype) : Array(sizes, row_major(sizes), dtype) {}
  Array(DimVector sizes, DimVector strides, DType dtype)
      : sizes(sizes), strides(strides), dtype(dtype) {
    int64_t last = 0;
    for (size_t i = 0; i < sizes.size(); i++)
      last += std::max<int64_t>(0, sizes[i] - 1) * strides[i];
    bytes.resize(static_cast<size_t>((last + 1) * item_size(dtype)));
  }
  static DimVector row_major(const DimVector& sizes) {
    DimVector strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
    return strides;
  }
  View view() {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return {bytes.data(), dtype, sizes, strides, n, true};
  }
  // Row-major values in double.
  std::vector<double> values() {
    Array dense(sizes, DType::kFloat64);
    const View to = dense.view();
    if (to.numel) copy(to, view());
    const double* p = reinterpret_cast<double*>(dense.bytes.data());
    return {p, p + to.numel};
  }
  void fill(const std::vector<double>& values) {
    Array dense(sizes, DType::kFloat64);
    std::memcpy(dense.bytes.data(), values.data(), values.size() * sizeof(double));
    if (!values.empty()) copy(view(), dense.view());
  }
  void randomize(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<double> v(static_cast<size_t>(view().numel));
    for (double& x : v)
      x = static_cast<double>(static_cast<int>(random() % 2001) - 1000) /
          (is_inexact(dtype) ? 64 : 16);
    fill(v);
  }
};

DimVector reduced_sizes(const DimVector& sizes, const std::vector<int64_t>& dims) {
  DimVector out;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) == dims.end())
      out.push_back(sizes[i]);
  }
  return out;
}

// For each result in row-major order, the values that it is reduced from.
std::vector<std::vector<double>> groups(Array& x, const std::vector<int64_t>& dims) {
  const DimVector kept = reduced_sizes(x.sizes, dims);
  int64_t n = 1;
  for (int64_t s : kept) n *= s;
  std::vector<std::vector<double>> out(static_cast<size_t>(n));
  const std::vector<double> values = x.values();
  for (size_t i = 0; i < values.size(); i++) {
    size_t rest = i, group = 0, step = 1;
    for (size_t d = x.sizes.size(); d-- > 0;) {
      const size_t size = static_cast<size_t>(x.sizes[d]), at = rest % size;
      rest /= size;
      if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end()) continue;
      group += at * step;
      step *= size;
    }
    out[group].push_back(values[i]);
  }
  return out;
}

struct Case {
  DimVector sizes, strides;
  std::vector<int64_t> dims;
};
std::vector<Case> cases() {
  return {
      {{7}, {1}, {0}},
      {{70000}, {1}, {0}},
      {{70000}, {3}, {0}},
      {{5, 9}, {9, 1}, {0}},
      {{5, 9}, {9, 1}, {1}},
      {{5, 9}, {1, 5}, {1}},
      {{3000, 3}, {3, 1}, {0}},
      {{3, 3000}, {3000, 1}, {1}},
      {{300, 257}, {257, 1}, {0}},
      {{300, 257}, {1, 300}, {0}},
      {{4, 5, 6}, {30, 6, 1}, {0, 2}},
      {{4, 5, 6}, {1, 4, 20}, {1}},
      {{2, 3, 8, 8}, {192, 1, 24, 3}, {0, 2, 3}},
      {{6, 4}, {1, 0}, {1}},
      {{4, 100, 70}, {7000, 1, 100}, {1}},
      {{1, 1}, {1, 1}, {0}},
  };
}

using Kernel = std::function<void(const View& out, const View& x, IntSpan dims)>;
using Reference = std::function<double(const std::vector<double>&)>;

void check(const Kernel& kernel, const Reference& reference, DType dtype, DType result,
           double tolerance) {
  unsigned seed = 1;
  for (const Case& c : cases()) {
    Array x(c.sizes, c.strides, dtype);
    x.randomize(seed++);
    Array out(reduced_sizes(c.sizes, c.dims), result);
    kernel(out.view(), x.view(), IntSpan(c.dims));
    const std::vector<double> got = out.values();
    const auto expected = groups(x, c.dims);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); i++) {
      const double want = reference(expected[i]);
      ASSERT_NEAR(got[i], want, tolerance * (1 + std::abs(want)))
          << to_text(IntSpan(c.sizes)) << " at " << i;
    }
  }
}

double sum_of(const std::vector<double>& v) {
  long double s = 0;
  for (double x : v) s += x;
  return static_cast<double>(s);
}

TEST(Reduce, SumInEveryType) {
  const Kernel kernel = [](const View& out, const View& x, IntSpan dims) {
    sum(out, x, dims, false, {});
  };
  check(kernel, sum_of, DType::kFloat32, DType::kFloat32, 1e-6);
  check(kernel, sum_of, DType::kFloat64, DType::kFloat64, 1e-14);
  check(kernel, sum_of, DType::kInt32, DType::kInt64, 0);
  check(kernel, sum_of, DType::kUInt8, DType::kInt64, 0);
  check(kernel, sum_of, DType::kFloat16, DType::kFloat32, 1e-6);
}

TEST(Reduce, Extremes) {
  const Reference largest = [](const std::vector<double>& v) {
    return *std::max_element(v.begin(), v.end());
  };
  const Reference smallest = [](const std::vector<double>& v) {
    return *std::min_element(v.begin(), v.end());
  };
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kInt16, DType::kInt64,
                  DType::kBFloat16}) {
    check([](const View& o, const View& x, IntSpan d) { amax(o, x, d, false); }, largest, t, t, 0);
    check([](const View& o, const View& x, IntSpan d) { amin(o, x, d, false); }, smallest, t, t, 0);
  }
}

TEST(Reduce, Variance) {
  const Reference reference = [](const std::vector<double>& v) {
    const double mean = sum_of(v) / static_cast<double>(v.size());
    double s = 0;
    for (double x : v) s += (x - mean) * (x - mean);
    return s / static_cast<double>(v.size());
  };
  const Kernel kernel = [](const View& o, const View& x, IntSpan d) {
    var(o, x, d, Scalar(int64_t{0}), false);
  };
  check(kernel, reference, DType::kFloat32, DType::kFloat32, 1e-5);
  check(kernel, reference, DType::kFloat64, DType::kFloat64, 1e-13);
}

TEST(Reduce, Norms) {
  const auto kernel = [](double p) {
    return [p](const View& o, const View& x, IntSpan d) { vector_norm(o, x, p, d, false, {}); };
  };
  const auto reference = [](double p) {
    return [p](const std::vector<double>& v) {
      double s = p < 0 ? INFINITY : 0;
      for (double x : v) {
        if (std::isinf(p))
          s = p > 0 ? std::max(s, std::abs(x)) : std::min(s, std::abs(x));
        else
          s += p == 0 ? x != 0 : std::pow(std::abs(x), p);
      }
      return p == 2 ? std::sqrt(s) : s;
    };
  };
  for (double p : {0.0, 1.0, 2.0, static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
    check(kernel(p), reference(p), DType::kFloat32, DType::kFloat32, 1e-6);
  }
}

TEST(Reduce, FirstOfEqualExtremes) {
  for (const Case& c : cases()) {
    if (c.dims.size() != 1) continue;
    Array x(c.sizes, c.strides, DType::kInt16);
    x.randomize(3);
    const DimVector sizes = reduced_sizes(c.sizes, c.dims);
    Array out(sizes, DType::kInt64);
    argmax(out.view(), x.view(), c.dims[0], false);
    const auto expected = groups(x, c.dims);
    const std::vector<double> got = out.values();
    for (size_t i = 0; i < got.size(); i++) {
      const auto& v = expected[i];
      ASSERT_EQ(got[i], static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin()));
    }
  }
}

TEST(Reduce, NaNWins) {
  for (int64_t n : {1, 5, 40, 3000}) {
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      Array x({n}, DType::kFloat32), out(DimVector(), DType::kFloat32),
          place(DimVector(), DType::kInt64);
      std::vector<double> v(static_cast<size_t>(n), 1.0);
      v[static_cast<size_t>(at)] = std::nan("");
      x.fill(v);
      amax(out.view(), x.view(), {}, false);
      EXPECT_TRUE(std::isnan(out.values()[0]));
      argmin(place.view(), x.view(), {}, false);
      EXPECT_EQ(place.values()[0], static_cast<double>(at));
    }
  }
}

TEST(Reduce, EmptyGivesTheIdentity) {
  Array x({0, 3}, DType::kFloat32), out({3}, DType::kFloat32);
  const int64_t dim = 0;
  sum(out.view(), x.view(), IntSpan(&dim, 1), false, {});
  EXPECT_EQ(out.values(), std::vector<double>(3, 0.0));
  mean(out.view(), x.view(), IntSpan(&dim, 1), false, {});
  EXPECT_TRUE(std::isnan(out.values()[1]));
}

TEST(Softmax, MatchesItsDefinitionAlongAnyDimension) {
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    const double tolerance = t == DType::kFloat64 ? 1e-14 : t == DType::kFloat32 ? 1e-6 : 1e-2;
    for (int64_t dim : {0, 1, 2}) {
      Array x({5, 37, 70}, t), y({5, 37, 70}, t), z({5, 37, 70}, t);
      x.randomize(4);
      softmax(y.view(), x.view(), dim, {});
      log_softmax(z.view(), x.view(), dim, {});
      const auto in = groups(x, {dim}), out = groups(y, {dim}), logs = groups(z, {dim});
      for (size_t i = 0; i < in.size(); i++) {
        const double high = *std::max_element(in[i].begin(), in[i].end());
        double s = 0;
        for (double v : in[i]) s += std::exp(v - high);
        for (size_t k = 0; k < in[i].size(); k++) {
          ASSERT_NEAR(out[i][k], std::exp(in[i][k] - high) / s, tolerance);
          const double want = in[i][k] - high - std::log(s);
          ASSERT_NEAR(logs[i][k], want, tolerance * (1 + std::abs(want)));
        }
      }
    }
  }
}

TEST(Sort, OrdersAndKeepsTies) {
  for (int64_t n : {1, 2, 100, 5000}) {
    for (DType t :
         {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kInt64, DType::kFloat16}) {
      for (bool descending : {false, true}) {
        Array x({2, n}, DimVector{1, 2}, t), values({2, n}, t), indices({2, n}, DType::kInt64);
        x.randomize(5);
        sort(values.view(), indices.view(), x.view(), 1, descending);
        const std::vector<double> in = x.values(), out = values.values(), from = indices.values();
        for (int64_t row = 0; row < 2; row++) {
          for (int64_t i = 0; i < n; i++) {
            const size_t at = static_cast<size_t>(row * n + i);
            ASSERT_EQ(out[at], in[static_cast<size_t>(row * n) + static_cast<size_t>(from[at])]);
            if (i == 0) continue;
            ASSERT_TRUE(descending ? out[at - 1] >= out[at] : out[at - 1] <= out[at]);
            if (out[at - 1] == out[at]) {
              ASSERT_LT(from[at - 1], from[at]);
            }
          }
        }
      }
    }
  }
}

TEST(Scan, RunningSums) {
  for (int64_t dim : {0, 1}) {
    Array x({40, 30}, DimVector{1, 40}, DType::kFloat32), out({40, 30}, DType::kFloat32);
    x.randomize(6);
    cumsum(out.view(), x.view(), dim, {});
    const auto in = groups(x, {dim}), got = groups(out, {dim});
    for (size_t i = 0; i < in.size(); i++) {
      double s = 0;
      for (size_t k = 0; k < in[i].size(); k++) ASSERT_NEAR(got[i][k], s += in[i][k], 1e-4);
    }
  }
}

}  // namespace
}  // namespace taeda::cpu
