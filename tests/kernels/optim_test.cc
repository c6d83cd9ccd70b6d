// Fused steps against the update formulas in float64, one element at a time.
#include "kernels/cpu/optim/optim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/parallel.h"

namespace taeda {
namespace {

template <class T>
struct Tensors {
  std::vector<std::vector<T>> data;
  std::vector<DimVector> sizes, strides;
  std::vector<View> views;
  Tensors(std::initializer_list<int64_t> lengths, std::mt19937& rng, bool positive = false) {
    std::normal_distribution<double> normal;
    for (const int64_t n : lengths) {
      data.emplace_back();
      for (int64_t i = 0; i < n; i++) {
        const double x = normal(rng);
        data.back().push_back(T(static_cast<float>(positive ? x * x : x)));
      }
      sizes.push_back({n});
      strides.push_back({1});
    }
    for (size_t i = 0; i < data.size(); i++) {
      views.push_back({data[i].data(), kDTypeOf<T>, sizes[i], strides[i],
                       static_cast<int64_t>(data[i].size()), true});
    }
  }
  Tensors(const Tensors&) = delete;
  std::vector<double> flat() const {
    std::vector<double> all;
    for (const auto& d : data) {
      for (T x : d) all.push_back(static_cast<double>(x));
    }
    return all;
  }
};

template <class T>
double tolerance() {
  return std::is_same_v<T, double>  ? 1e-12
         : std::is_same_v<T, float> ? 3e-6
         : std::is_same_v<T, Half>  ? 4e-3
                                    : 3e-2;
}
template <class T>
void expect_near(const Tensors<T>& got, const std::vector<double>& want, const char* what) {
  const std::vector<double> flat = got.flat();
  for (size_t i = 0; i < want.size(); i++) {
    ASSERT_NEAR(flat[i], want[i], tolerance<T>() * (1 + std::abs(want[i]))) << what << " " << i;
  }
}

template <class T>
class FusedStep : public testing::Test {};
using Types = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(FusedStep, Types);

// Odd lengths exercise the tails; the long one runs in parallel.
#define TD_LENGTHS \
  { 3, 40001, 0, 17, 64 }

TYPED_TEST(FusedStep, Sgd) {
  for (int variant = 0; variant < 16; variant++) {
    std::mt19937 rng(variant);
    Tensors<TypeParam> p(TD_LENGTHS, rng), g(TD_LENGTHS, rng), b(TD_LENGTHS, rng);
    cpu::SgdOptions o{.lr = 0.1, .grad_scale = 0.5};
    if (variant & 1) o.momentum = 0.9, o.dampening = variant & 8 ? 0.25 : 0;
    if (variant & 2) o.weight_decay = 0.01, o.maximize = true;
    o.nesterov = (variant & 4) && (variant & 1);
    o.first_step = (variant & 8) && !(variant & 2);
    auto wp = p.flat(), wb = b.flat();
    const auto wg = g.flat();
    for (size_t i = 0; i < wp.size(); i++) {
      double d = wg[i] * 0.5 * (o.maximize ? -1 : 1) + o.weight_decay * wp[i];
      if (o.momentum != 0) {
        wb[i] = o.first_step ? d : o.momentum * wb[i] + (1 - o.dampening) * d;
        d = o.nesterov ? d + o.momentum * wb[i] : wb[i];
      }
      wp[i] -= o.lr * d;
    }
    cpu::fused_sgd(p.views, g.views, o.momentum != 0 ? cpu::Views(b.views) : cpu::Views(), o);
    expect_near(p, wp, "param");
    expect_near(b, wb, "buffer");
  }
}

TYPED_TEST(FusedStep, Adam) {
  for (int variant = 0; variant < 8; variant++) {
    std::mt19937 rng(variant);
    Tensors<TypeParam> p(TD_LENGTHS, rng), g(TD_LENGTHS, rng), m(TD_LENGTHS, rng),
        v(TD_LENGTHS, rng, true), x(TD_LENGTHS, rng, true);
    cpu::AdamOptions o{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3};
    o.decoupled = variant & 1;
    o.weight_decay = variant & 2 ? 0.1 : 0;
    o.amsgrad = variant & 4;
    std::vector<double> steps = {1, 2, 3, 4, 100};
    std::vector<View> counters;
    for (double& step : steps)
      counters.push_back({&step, DType::kFloat64, {}, {}, 1, true, DeviceType::kCPU});
    auto wp = p.flat(), wm = m.flat(), wv = v.flat(), wx = x.flat();
    const auto wg = g.flat();
    size_t i = 0;
    for (size_t k = 0; k < steps.size(); k++) {
      for (const size_t end = i + p.data[k].size(); i < end; i++) {
        double d = wg[i];
        if (o.decoupled)
          wp[i] -= o.lr * o.weight_decay * wp[i];
        else
          d += o.weight_decay * wp[i];
        wm[i] = o.beta1 * wm[i] + (1 - o.beta1) * d;
        wv[i] = o.beta2 * wv[i] + (1 - o.beta2) * d * d;
        if (o.amsgrad) wx[i] = std::max(wx[i], wv[i]);
        const double second = (o.amsgrad ? wx[i] : wv[i]) / (1 - std::pow(o.beta2, steps[k]));
        wp[i] -= o.lr * wm[i] / (1 - std::pow(o.beta1, steps[k])) / (std::sqrt(second) + o.eps);
      }
    }
    cpu::fused_adam(p.views, g.views, m.views, v.views,
                    o.amsgrad ? cpu::Views(x.views) : cpu::Views(), counters, o);
    expect_near(p, wp, "param");
    expect_near(m, wm, "average");
    expect_near(v, wv, "square");
    expect_near(x, wx, "maximum");
  }
}

TYPED_TEST(FusedStep, Rmsprop) {
  for (int variant = 0; variant < 4; variant++) {
    std::mt19937 rng(variant);
    // Means far below the squares, so that their difference stays positive.
    Tensors<TypeParam> p(TD_LENGTHS, rng), g(TD_LENGTHS, rng), v(TD_LENGTHS, rng, true),
        b(TD_LENGTHS, rng);
    Tensors<TypeParam> m(TD_LENGTHS, rng);
    for (auto& d : v.data)
      for (auto& x : d) x = TypeParam(static_cast<float>(x) + 4.0f);
    for (auto& d : m.data)
      for (auto& x : d) x = TypeParam(static_cast<float>(x) * 0.1f);
    cpu::RmspropOptions o{.lr = 0.01, .alpha = 0.9, .eps = 1e-3, .weight_decay = 0.02};
    o.centered = variant & 1;
    o.momentum = variant & 2 ? 0.8 : 0;
    auto wp = p.flat(), wv = v.flat(), wm = m.flat(), wb = b.flat();
    const auto wg = g.flat();
    for (size_t i = 0; i < wp.size(); i++) {
      const double d = wg[i] + o.weight_decay * wp[i];
      wv[i] = o.alpha * wv[i] + (1 - o.alpha) * d * d;
      double square = wv[i];
      if (o.centered) {
        wm[i] = o.alpha * wm[i] + (1 - o.alpha) * d;
        square -= wm[i] * wm[i];
      }
      double step = d / (std::sqrt(square) + o.eps);
      if (o.momentum != 0) step = wb[i] = o.momentum * wb[i] + step;
      wp[i] -= o.lr * step;
    }
    cpu::fused_rmsprop(p.views, g.views, v.views, o.centered ? cpu::Views(m.views) : cpu::Views(),
                       o.momentum != 0 ? cpu::Views(b.views) : cpu::Views(), o);
    expect_near(p, wp, "param");
    expect_near(v, wv, "square");
    expect_near(m, wm, "mean");
    expect_near(b, wb, "buffer");
  }
}

}  // namespace
}  // namespace taeda
