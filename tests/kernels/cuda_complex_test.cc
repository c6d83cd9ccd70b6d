// The complex functions that kernels get where there is no standard library, beside std::complex.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

namespace device_std {
using std::acos, std::asinh, std::atan2, std::copysign, std::cos, std::cosh, std::exp, std::fabs;
using std::hypot, std::log, std::log1p, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
}  // namespace device_std
#define TD_STD device_std
#include "kernels/cuda/text/complex.cuh"

namespace {

using Ours = device_std::complex<double>;
using Theirs = std::complex<double>;

std::vector<Theirs> points() {
  std::vector<Theirs> all;
  for (const double re : {-30.0, -2.5, -1.0, -0.3, -1e-5, 0.0, 1e-5, 0.4, 1.0, 3.0, 40.0})
    for (const double im : {-4.0, -1.0, -0.7, -1e-6, -0.0, 0.0, 1e-6, 0.5, 1.0, 2.0, 25.0})
      all.emplace_back(re, im);
  return all;
}

// Each part to 1e-12 of the value's modulus.
template <class F, class G>
void expect_same(const char* name, F ours, G theirs, bool near_poles = false) {
  for (const Theirs z : points()) {
    const Theirs expected = theirs(z);
    if (!std::isfinite(expected.real()) || !std::isfinite(expected.imag())) continue;
    const Ours y = ours(Ours(z.real(), z.imag()));
    const double scale = std::max(1e-300, std::abs(expected)) * (near_poles ? 1e-9 : 1e-12);
    EXPECT_NEAR(y.real(), expected.real(), scale) << name << z;
    EXPECT_NEAR(y.imag(), expected.imag(), scale) << name << z;
  }
}

#define TD_SAME(name)                                                                              \
  TEST(CudaComplex, name) {                                                                        \
    expect_same(                                                                                   \
        #name, [](Ours z) { return device_std::name(z); }, [](Theirs z) { return std::name(z); }); \
  }
TD_SAME(exp)
TD_SAME(log)
TD_SAME(log10)
TD_SAME(sqrt)
TD_SAME(sin)
TD_SAME(cos)
TD_SAME(tan)
TD_SAME(asin)
TD_SAME(acos)
TD_SAME(atan)
TD_SAME(sinh)
TD_SAME(cosh)
TD_SAME(tanh)
TD_SAME(asinh)
TD_SAME(acosh)
TD_SAME(atanh)
TD_SAME(conj)
#undef TD_SAME

TEST(CudaComplex, pow) {
  for (const Theirs y : {Theirs(2, 0), Theirs(-1.5, 0.3), Theirs(0.5, -2)})
    expect_same(
        "pow", [&](Ours z) { return device_std::pow(z, Ours(y.real(), y.imag())); },
        [&](Theirs z) { return std::pow(z, y); }, true);
}

TEST(CudaComplex, Arithmetic) {
  const Ours a(3, -2), b(0.5, 4);
  const auto is = [](Ours z, double re, double im) { return z == Ours(re, im); };
  EXPECT_TRUE(is(a + b, 3.5, 2) && is(a - b, 2.5, -6) && is(-a, -3, 2));
  EXPECT_TRUE(is(a * b, 9.5, 11) && is(a * 2.0, 6, -4) && is(2.0 * a, 6, -4) &&
              is(a / 2.0, 1.5, -1));
  EXPECT_EQ(device_std::abs(Ours(3, 4)), 5);
  EXPECT_TRUE(is(Ours(device_std::complex<float>(1, 2)), 1, 2));
}

}  // namespace
