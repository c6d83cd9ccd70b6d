// The Box-Muller transform on float vectors: z0 = sqrt(-2 log(1-u1)) cos(2 pi u2), z1 the same with
// sin.
//
// Logarithm, sine and cosine are Cephes' polynomials (S. Moshier, Methods and Programs for
// Mathematical Functions, 1989) on 8 lanes, so that the numbers are those of PyTorch's vector code;
// more lanes would change nothing but pair other elements.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/random/random_normal.cc"
#include <numbers>

#include "base/parallel.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using D = hn::CappedTag<float, 8>;
using V = hn::Vec<D>;

V constant(float value) { return hn::Set(D(), value); }

template <size_t N>
V polynomial(V x, const float (&coefficients)[N]) {
  V y = constant(coefficients[0]);
  for (size_t i = 1; i < N; i++) y = hn::MulAdd(y, x, constant(coefficients[i]));
  return y;
}

// log(x) for x in (0, 1].
V log_of(V x) {
  const hn::RebindToSigned<D> di;
  x = hn::Max(x, constant(0x1p-126f));
  const auto bits = hn::BitCast(di, x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2))
  V e = hn::ConvertTo(D(), hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 126)));
  V m = hn::BitCast(D(), hn::Or(hn::And(bits, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f000000)));
  const auto low = hn::Lt(m, constant(0.707106781186547524f));
  e = hn::Sub(e, hn::IfThenElseZero(low, constant(1.0f)));
  m = hn::Add(hn::Sub(m, constant(1.0f)), hn::IfThenElseZero(low, m));
  const V square = hn::Mul(m, m);
  V y = polynomial(m, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f,
                       1.4249322787e-1f, -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f,
                       3.3333331174e-1f});
  // log 2 in two parts
  y = hn::MulAdd(hn::Mul(y, m), square, hn::Mul(e, constant(-2.12194440e-4f)));
  y = hn::NegMulAdd(square, constant(0.5f), y);
  return hn::MulAdd(e, constant(0.693359375f), hn::Add(m, y));
}

// sin and cos of x >= 0.
void sincos_of(V x, V& sine, V& cosine) {
  const hn::RebindToSigned<D> di;
  // j = the even octant at or above x / (pi/4)
  auto j = hn::ConvertTo(di, hn::Mul(x, constant(1.27323954473516f)));
  j = hn::And(hn::Add(j, hn::Set(di, 1)), hn::Set(di, ~1));
  const V octant = hn::ConvertTo(D(), j);
  // x - j * pi/4, pi/4 in three parts
  x = hn::MulAdd(octant, constant(-0.78515625f), x);
  x = hn::MulAdd(octant, constant(-2.4187564849853515625e-4f), x);
  x = hn::MulAdd(octant, constant(-3.77489497744594108e-8f), x);
  const V z = hn::Mul(x, x);
  V c = polynomial(z, {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f});
  c = hn::Add(hn::MulSub(hn::Mul(c, z), z, hn::Mul(z, constant(0.5f))), constant(1.0f));
  V s = polynomial(z, {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f});
  s = hn::MulAdd(hn::Mul(s, z), x, x);
  const auto swap = hn::RebindMask(D(), hn::Ne(hn::And(j, hn::Set(di, 2)), hn::Zero(di)));
  const auto sine_sign = hn::BitCast(D(), hn::ShiftLeft<29>(hn::And(j, hn::Set(di, 4))));
  const auto cosine_sign =
      hn::BitCast(D(), hn::ShiftLeft<29>(hn::And(hn::Add(j, hn::Set(di, 2)), hn::Set(di, 4))));
  sine = hn::Xor(hn::IfThenElse(swap, c, s), sine_sign);
  cosine = hn::Xor(hn::IfThenElse(swap, s, c), cosine_sign);
}

void transform(float* data, int64_t n, float mean, float std) {
  const D d;
  const V mean_v = constant(mean), std_v = constant(std);
  for (int64_t i = 0; i < n; i += 16) {
    for (size_t j = 0; j < 8; j += hn::Lanes(d)) {
      float* first = data + i + j;
      const V u1 = hn::Sub(constant(1.0f), hn::LoadU(d, first));
      const V radius = hn::Sqrt(hn::Mul(constant(-2.0f), log_of(u1)));
      V sine, cosine;
      sincos_of(hn::Mul(constant(2.0f * std::numbers::pi_v<float>), hn::LoadU(d, first + 8)), sine,
                cosine);
      hn::StoreU(hn::MulAdd(hn::Mul(radius, cosine), std_v, mean_v), d, first);
      hn::StoreU(hn::MulAdd(hn::Mul(radius, sine), std_v, mean_v), d, first + 8);
    }
  }
}

}  // namespace
void box_muller_chunk(float* data, int64_t n, float mean, float std) {
  transform(data, n, mean, std);
}
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(box_muller_chunk);

void box_muller(float* data, int64_t n, float mean, float std) {
  parallel_for(0, n, 16384, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(box_muller_chunk)(data + begin, end - begin, mean, std);
  });
}

}  // namespace taeda::cpu
#endif
