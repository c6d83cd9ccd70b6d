#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/bessel.cc"
#include "kernels/cpu/simd/simd.h"

#include <numbers>

#include "kernels/cpu/pointwise/bessel.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using V = Vec<double>;

constexpr double kTwoOverPi = 2 * std::numbers::inv_pi;

// Fits of power series in t, from -1 to 1, by Chebyshev interpolation. With t = x^2 / 32 - 1, to 8
// and to 2e-15: J_0(x), J_1(x) / x, Y_0(x) - 2/pi log(x) J_0(x) and (Y_1(x) - 2/pi (log(x) J_1(x) -
// 1/x)) / x.
constexpr double kJ0[] = {0.045829664859813754,   0.9303012472958457,    -0.6484692830871821,
                          -0.8080888076692623,    1.0383794611436883,    -0.5074680458516896,
                          0.14598884856785538,    -0.02847271858902714,  0.004058078988108771,
                          -0.0004435459758542475, 3.847320005801417e-05, -2.717679287941214e-06,
                          1.5955848859935914e-07, -7.96194687687482e-09, 3.3794626319436793e-10};
constexpr double kJ1[] = {-0.05814382795599107,    0.08105866038589758,     0.15151665143806636,
                          -0.2595948652859166,     0.15858376432721838,     -0.05474581821299505,
                          0.012456814392263375,    -0.002029039493866671,   0.0002494945813597261,
                          -2.4045750380401832e-05, 1.8684526037206013e-06,  -1.1966856610655616e-07,
                          6.431190177265836e-09,   -2.9580309461613664e-10, 1.1658972367678622e-11};
constexpr double kY0[] = {-0.38225065445942497,   -0.8284358903604341,    1.6470964788745432,
                          0.14412632369210437,    -1.077547733821527,     0.6721770783531077,
                          -0.21895747096229642,   0.04636704763404262,    -0.0070257410549918785,
                          0.0008061587216633229,  -7.279542368660281e-05, 5.321167346373158e-06,
                          -3.218450383864968e-07, 1.649185103178187e-08,  -7.165821913752182e-10};
constexpr double kY1[] = {0.07075985882118005,     -0.24337743079193033,   0.02336757172099348,
                          0.2350720920666676,      -0.19639839859930203,   0.07854786922274869,
                          -0.01962875683311711,    0.0034224907383790058,  -0.0004438173434420147,
                          4.467433389052664e-05,   -3.601000022590458e-06, 2.380443767044983e-07,
                          -1.3153147367094951e-08, 6.202538033356882e-10,  -2.499531546171249e-11};

// With t = 128 / x^2 - 1, from 8 on and to 7e-15: the modulus' parts P_n and x Q_n [A&S 9.2.5].
constexpr double kP0[] = {0.9994572757882526,      -0.0005363673192140685,  6.137416047543163e-06,
                          -2.0527446058637657e-07, 1.2804017666717393e-08,  -1.2122331597442108e-09,
                          1.5430831129269752e-10,  -2.4629541128263808e-11, 5.538042551238324e-12,
                          -1.2976727285594202e-12};
constexpr double kQ0[] = {-0.1244409110361129,    0.0005466519279557061,  -1.181711042632956e-05,
                          5.684970271731149e-07,  -4.535157598705387e-08, 5.147111492483561e-09,
                          -7.525993385397352e-10, 1.3430655343255634e-10, -3.4164000617701637e-11,
                          8.71470088242267e-12};
constexpr double kP1[] = {1.0009070262780815,      0.0008988049416716917,   -7.959694663578884e-06,
                          2.453676398677532e-07,   -1.4708787296165847e-08, 1.3604283513176835e-09,
                          -1.7056402360564498e-10, 2.6934110557353714e-11,  -5.9958064435078266e-12,
                          1.3958847733874478e-12};
constexpr double kQ1[] = {0.37421499221959686,   -0.000769716705773066,   1.4569614559190186e-05,
                          -6.63356684929497e-07, 5.1363032019956935e-08,  -5.721826524724098e-09,
                          8.262340270938331e-10, -1.4611471148907213e-10, 3.68309922090653e-11,
                          -9.341444905118392e-12};

// With t = x^2 / 2 - 1, to 2: I_0(x), I_1(x) / x, K_0(x) + log(x/2) I_0(x), x (K_1(x) - log(x/2)
// I_1(x)); with t = 4 / x - 1, from 2 on: sqrt(x) K_n(x) e^x. To 6e-12.
constexpr double kI0[] = {1.5660829297563308,     0.635861728156068,     0.07358986836168832,
                          0.003928565105644117,   0.0001198206826414951, 2.3575789615827903e-06,
                          3.2367353282159444e-08, 3.273598657287219e-10};
constexpr double kI1[] = {0.6358617281560675,     0.14717973672210669,    0.011785695316945507,
                          0.00047928274326549763, 1.1787894764061958e-05, 1.9417364085156806e-07,
                          2.2915541416957693e-09, 2.031922759238477e-11};
constexpr double kK0[] = {-0.3036207729157981,   0.3404973210133794,     0.07177701034376824,
                          0.005053392643212586,  0.00018280555146344958, 4.054506560572984e-06,
                          6.094452407104669e-08, 6.62380496488552e-10};
constexpr double kK1[] = {0.885088287730256,      -0.33224095524029124,  -0.2438385288890774,
                          -0.027854235220063136,  -0.001383168739947689, -3.891868959505799e-05,
                          -7.082840418351123e-07, -9.033525712854578e-09};
constexpr double kK0Far[] = {
    1.2185953385144563,    -0.031071461770323192,   0.003032891707874583,  -0.0004797705494886461,
    9.956214380577181e-05, -2.4723638318659523e-05, 6.993002217002858e-06, -2.2290165542366706e-06,
    7.678527050354634e-07, -2.1048593727911624e-07, 6.913322718486612e-08, -8.148468986344854e-08,
    3.8009837874276894e-08};
constexpr double kK1Far[] = {1.363151890370136,     0.10334973769168672,     -0.005566729764195881,
                             0.0007357258563617033, -0.00013959202657244275, 3.283067679602524e-05,
                             -8.95074042438445e-06, 2.773212936977505e-06,   -9.351155634031589e-07,
                             2.562649816474752e-07, -8.368093968530311e-08,  9.439554752107842e-08,
                             -4.362174133100116e-08};

// c[0] + c[1] t + ..., even and odd powers apart.
template <size_t n>
TD_FN V series(V t, const double (&c)[n]) {
  const V z = t * t;
  V even(n % 2 ? c[n - 1] : 0.0), odd(0);
#pragma GCC unroll 8
  for (size_t i = n / 2 * 2; i >= 2; i -= 2) {
    even = fma(even, z, V(c[i - 2]));
    odd = fma(odd, z, V(c[i - 1]));
  }
  return fma(odd, t, even);
}

// near(x) up to the limit, far(x) beyond it and for NaN.
template <class Near, class Far>
TD_FN V by_size(V x, double limit, const Near& near, const Far& far) {
  const Mask<double> within = x <= limit;
  if (all(within)) return near(x);
  if (!any(within)) return far(x);
  return select(within, near(x), far(x));
}

TD_FN V of_square(V x) { return fma(x, x * V(1.0 / 32), V(-1)); }

// From 8 on, the Bessel functions are waves: what their phase of -pi/4 (order 0) or -3 pi/4 makes
// of sine and cosine, times P and Q.
struct Wave {
  V p, q, sum, difference;  // sine + cosine, sine - cosine, both over sqrt(pi x)
};
template <size_t n>
TD_FN Wave wave(V x, const double (&p)[n], const double (&q)[n]) {
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

template <class F>
void loop(const float* x, float* out, int64_t n) {
  constexpr int64_t kLanes = Vec<float>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, through_double(F(), load(x + i)));
  if (i < n) store_n(out + i, through_double(F(), load_n(x + i, n - i)), n - i);
}

void run(BesselFunction function, const float* x, float* out, int64_t n) {
  switch (function) {
    case BesselFunction::kJ0:
      return loop<J0>(x, out, n);
    case BesselFunction::kJ1:
      return loop<J1>(x, out, n);
    case BesselFunction::kY0:
      return loop<Y0>(x, out, n);
    case BesselFunction::kY1:
      return loop<Y1>(x, out, n);
    case BesselFunction::kK0:
      return loop<K<0, false>>(x, out, n);
    case BesselFunction::kK1:
      return loop<K<1, false>>(x, out, n);
    case BesselFunction::kScaledK0:
      return loop<K<0, true>>(x, out, n);
    case BesselFunction::kScaledK1:
      return loop<K<1, true>>(x, out, n);
  }
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(run);
void bessel(BesselFunction function, const float* x, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(run)(function, x, out, n);
}
}  // namespace taeda::cpu
#endif
