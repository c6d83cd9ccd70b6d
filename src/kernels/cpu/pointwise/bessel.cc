#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/bessel.cc"
#include "kernels/cpu/simd/simd.h"

#include <numbers>

#include "kernels/cpu/pointwise/bessel.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using namespace bessel_fits;
using V = Vec<double>;

constexpr double kTwoOverPi = 2 * std::numbers::inv_pi;

TD_FN V of_square(V x) { return fma(x, x * V(1.0 / 32), V(-1)); }

// From 8 on, the Bessel functions are waves: what their phase of -pi/4 (order 0) or -3 pi/4 makes
// of sine and cosine, times P and Q.
struct Wave {
  V p, q, sum, difference;  // sine + cosine, sine - cosine, both over sqrt(pi x)
};
template <size_t n, size_t m>
TD_FN Wave wave(V x, const double (&p)[n], const double (&q)[m]) {
  const V t = fma(V(128) / x, V(1) / x, V(-1)), s = sin(x), c = cos(x);
  const V scale = V(1) / sqrt(V(std::numbers::pi) * x);
  return {series(t, p), series(t, q) / x, (s + c) * scale, (s - c) * scale};
}

TD_FN V near_j0(V x) { return series(of_square(x), kJ0); }
TD_FN V near_j1(V x) { return x * series(of_square(x), kJ1); }

struct J0 {
  TD_FN V operator()(V x) const {
    return by_size(
        abs(x), 8, [](V v) HWY_ATTR { return near_j0(v); },
        [](V v) HWY_ATTR {
          const Wave w = wave(v, kP0, kQ0);
          return fma(w.p, w.sum, -(w.q * w.difference));
        });
  }
};
struct J1 {
  TD_FN V operator()(V x) const {
    const V y = by_size(
        abs(x), 8, [](V v) HWY_ATTR { return near_j1(v); },
        [](V v) HWY_ATTR {
          const Wave w = wave(v, kP1, kQ1);
          return fma(w.p, w.difference, w.q * w.sum);
        });
    return select(x < 0, -y, y);
  }
};
// What is defined for positive numbers only.
TD_FN V positive(V x, V y, double at_zero) {
  return select(x < 0, V(kNaN), select(x == 0, V(at_zero), y));
}
struct Y0 {
  TD_FN V operator()(V x) const {
    const V y = by_size(
        x, 8,
        [](V v)
            HWY_ATTR { return fma(V(kTwoOverPi) * log(v), near_j0(v), series(of_square(v), kY0)); },
        [](V v) HWY_ATTR {
          const Wave w = wave(v, kP0, kQ0);
          return fma(w.p, w.difference, w.q * w.sum);
        });
    return positive(x, y, -kInf);
  }
};
struct Y1 {
  TD_FN V operator()(V x) const {
    const V y = by_size(
        x, 8,
        [](V v) HWY_ATTR {
          const V singular = V(kTwoOverPi) * fma(log(v), near_j1(v), V(-1) / v);
          return fma(v, series(of_square(v), kY1), singular);
        },
        [](V v) HWY_ATTR {
          const Wave w = wave(v, kP1, kQ1);
          return fma(w.q, w.difference, -(w.p * w.sum));
        });
    return positive(x, y, -kInf);
  }
};

template <int kOrder, bool kScaled>
struct K {
  TD_FN V operator()(V x) const {
    const V y = by_size(
        x, 2,
        [](V v) HWY_ATTR {
          const V t = fma(v, v * V(0.5), V(-1)), l = log(v * V(0.5));
          const V k = kOrder == 0 ? fma(-l, series(t, kI0), series(t, kK0))
                                  : fma(l * v, series(t, kI1), series(t, kK1) / v);
          return kScaled ? k * exp(v) : k;
        },
        [](V v) HWY_ATTR {
          const V t = V(4) / v - V(1);
          const V k = (kOrder == 0 ? series(t, kK0Far) : series(t, kK1Far)) / sqrt(v);
          return kScaled ? k : k * exp(-v);
        });
    return positive(x, y, kInf);
  }
};

struct SphericalJ0 {
  TD_FN V operator()(V x) const {
    const V y = select(x == 0, V(1), sin(x) / x);
    return select(isinf(x), V(0), y);
  }
};

// 2/3 a^(3/2) in two parts: e^-z and sine multiply the error by z.
struct AiryAngle {
  V z, low;
};
TD_FN AiryAngle airy_angle(V a) {
  constexpr double kThird = 2.0 / 3, kThirdLow = 0x1.5555555555555p-55;  // of 2/3
  const V root = sqrt(a), root_low = fma(-root, root, a) / (root + root);
  const V power = a * root, power_low = fma(a, root, -power) + a * root_low;
  const V z = power * V(kThird);
  return {z, fma(power, V(kThird), -z) + fma(power, V(kThirdLow), power_low * V(kThird))};
}
TD_FN V airy_far(V x) {
  const auto [z, low] = airy_angle(x);
  const V t = V(3.7712361663282534) / z - V(1), e = exp(-z);  // 2 z(2)
  return fma(-low, e, e) * series(t, kAiFar) / sqrt(sqrt(x));
}
TD_FN V airy_wave(V x) {
  const V a = -x;
  const auto [z, low] = airy_angle(a);
  const V ratio = V(6.363961030678928) / z;  // z(4.5)
  const V t = fma(ratio, ratio * V(2), V(-1)), c = cos(z), s = sin(z);
  const V cosine = fma(-low, s, c), sine = fma(low, c, s);
  // of z - pi/4, times sqrt(2)
  const V y = fma(series(t, kAiP), cosine + sine, series(t, kAiQ) / z * (sine - cosine));
  return y * V(0.3989422804014327) / sqrt(sqrt(a));
}
struct AiryAi {
  TD_FN V operator()(V x) const {
    const V y = by_size(
        -x, 4.5,
        [](V u) HWY_ATTR {
          return by_size(
              -u, 2,
              [](V w) HWY_ATTR {
                return by_size(
                    w, -1, [](V v) HWY_ATTR { return series((v + 2.75) / V(1.75), kAiLow); },
                    [](V v) HWY_ATTR { return series((v - 0.5) / V(1.5), kAiMiddle); });
              },
              [](V v) HWY_ATTR { return airy_far(raw_min(v, V(200))); });  // 0 from 104 on
        },
        [](V u) HWY_ATTR { return airy_wave(-u); });
    return select(isfinite(x), y, V(kNaN));
  }
};

template <class F>
TD_FN Vec<float> apply(const F& f, Vec<float> x) {
  return through_double(f, x);
}
template <class F>
TD_FN V apply(const F& f, V x) {
  return f(x);
}
template <class F, class T>
void loop(const T* x, T* out, int64_t n) {
  constexpr int64_t kLanes = Vec<T>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, apply(F(), load(x + i)));
  if (i < n) store_n(out + i, apply(F(), load_n(x + i, n - i)), n - i);
}

template <class T>
void run(SpecialFunction function, const T* x, T* out, int64_t n) {
  switch (function) {
    case SpecialFunction::kBesselJ0:
      return loop<J0>(x, out, n);
    case SpecialFunction::kBesselJ1:
      return loop<J1>(x, out, n);
    case SpecialFunction::kBesselY0:
      return loop<Y0>(x, out, n);
    case SpecialFunction::kBesselY1:
      return loop<Y1>(x, out, n);
    case SpecialFunction::kModifiedK0:
      return loop<K<0, false>>(x, out, n);
    case SpecialFunction::kModifiedK1:
      return loop<K<1, false>>(x, out, n);
    case SpecialFunction::kScaledK0:
      return loop<K<0, true>>(x, out, n);
    case SpecialFunction::kScaledK1:
      return loop<K<1, true>>(x, out, n);
    case SpecialFunction::kSphericalJ0:
      return loop<SphericalJ0>(x, out, n);
    case SpecialFunction::kAiryAi:
      return loop<AiryAi>(x, out, n);
  }
}
void run_float(SpecialFunction f, const float* x, float* out, int64_t n) { run(f, x, out, n); }
void run_double(SpecialFunction f, const double* x, double* out, int64_t n) { run(f, x, out, n); }

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(run_float);
HWY_EXPORT(run_double);
void bessel(SpecialFunction function, const float* x, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(run_float)(function, x, out, n);
}
void bessel(SpecialFunction function, const double* x, double* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(run_double)(function, x, out, n);
}
}  // namespace taeda::cpu
#endif
