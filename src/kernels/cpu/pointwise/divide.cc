// Integer division as a product of floating-point numbers.
//
// With h = 1/2 of the sign of y, floor(x / y) = floor((x + h) (1 / y)): x + h is exact and at least
// 1/2 away from every multiple of y, so that the two roundings, of 1 / y and of the product, cannot
// carry the quotient over an integer while |x| 2^-p < 1/8 or so, p being the mantissa's bits. The
// same with the sign of x gives the quotient rounded towards zero, and fma(-q, y, x) the remainder
// exactly. 8- and 16-bit integers are floats, as are int32 below 2^20; other int32 are doubles, and
// int64 below 2^49. Vectors with larger ones are divided one number at a time.
//
// Numbers of modest size become integers, and back, by adding 1.5 * 2^p: they then stand in the
// lowest bits, where a quotient that does not fit its type wraps around.
#include "kernels/cpu/pointwise/divide.h"

#include <algorithm>

#include "core/with_dtype.h"
#include "kernels/cpu/simd/lane.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/divide.cc"
#include "kernels/cpu/simd/simd.h"

#ifndef TAEDA_DIVIDE_ONCE
#define TAEDA_DIVIDE_ONCE
namespace taeda::cpu::lanes {

template <class T>
T divide_one(Division kind, T x, T y) {
  switch (kind) {
    case Division::kTrunc:
      return trunc_divide(Lane<T>(x), Lane<T>(y)).raw;
    case Division::kFloor:
      return floor_divide(Lane<T>(x), Lane<T>(y)).raw;
    case Division::kFmod:
      return fmod(Lane<T>(x), Lane<T>(y)).raw;
    default:
      return remainder(Lane<T>(x), Lane<T>(y)).raw;
  }
}

}  // namespace taeda::cpu::lanes
#endif

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

#if TD_EMULATED

template <class T>
void divide(Division kind, T* out, const T* x, const T* y, int64_t n, uint32_t repeated) {
  for (int64_t i = 0; i < n; i++)
    out[i] = lanes::divide_one(kind, x[repeated & 1 ? 0 : i], y[repeated & 2 ? 0 : i]);
}

#else

// Integers of type T as a vector of F, and back. int64 must be below 2^51.
template <class F, class T>
TD_FN Vec<F> load_integers(const T* p) {
  const hn::ScalableTag<F> d;
  const hn::RebindToSigned<decltype(d)> bits;
  const hn::Rebind<T, decltype(d)> stored;
  const auto raw = hn::LoadU(stored, p);
  if constexpr (sizeof(T) == 8) {
    const auto rounder = hn::BitCast(bits, Vec<F>(kRounder<F>).raw);
    return Vec<F>(hn::BitCast(d, hn::Add(raw, rounder))) - kRounder<F>;
  } else if constexpr (sizeof(T) == sizeof(F)) {
    return hn::ConvertTo(d, raw);
  } else if constexpr (sizeof(F) == 8) {
    return hn::PromoteTo(d, raw);
  } else {
    return hn::ConvertTo(d, hn::PromoteTo(bits, raw));
  }
}
template <class F, class T>
TD_FN void store_integers(T* p, Vec<F> x) {
  const hn::ScalableTag<F> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::Rebind<std::make_unsigned_t<T>, decltype(d)> stored;
  const auto rounded = hn::BitCast(bits, (x + kRounder<F>).raw);
  auto* const to = reinterpret_cast<std::make_unsigned_t<T>*>(p);
  if constexpr (sizeof(T) == sizeof(F))
    hn::StoreU(hn::Sub(rounded, hn::BitCast(bits, Vec<F>(kRounder<F>).raw)), stored, to);
  else
    hn::StoreU(hn::TruncateTo(stored, rounded), stored, to);
}

template <class F>
TD_FN Vec<F> divide_vectors(Division kind, Vec<F> x, Vec<F> y, Vec<F> inverse) {
  const bool down = kind == Division::kFloor || kind == Division::kRemainder;
  const Vec<F> q = down ? floor((x + copysign(Vec<F>(0.5), y)) * inverse)
                        : trunc((x + copysign(Vec<F>(0.5), x)) * inverse);
  return kind == Division::kTrunc || kind == Division::kFloor ? q : fma(-q, y, x);
}

// Whether all of a vector's integers are so small that F divides them exactly.
template <class F, class T>
TD_FN bool all_small(const T* p) {
  if constexpr (sizeof(T) < 4 || sizeof(T) < sizeof(F)) {
    return true;
  } else {
    constexpr int kBits = kIsFloat<F> ? 20 : 49;
    const hn::RebindToUnsigned<hn::ScalableTag<F>> d;
    using U = hn::TFromD<decltype(d)>;
    const auto v = hn::LoadU(d, reinterpret_cast<const U*>(p));
    const auto shifted = hn::ShiftRight<kBits + 1>(hn::Add(v, hn::Set(d, U(1) << kBits)));
    return hn::AllTrue(d, hn::Eq(shifted, hn::Zero(d)));
  }
}

// A whole number of vectors, up to the first that holds a large number or a zero divisor; returns
// how many elements are done.
template <class F, class T>
int64_t divide_run(Division kind, T* out, const T* x, const T* y, int64_t n, uint32_t repeated) {
  using V = Vec<F>;
  const int64_t move_x = repeated & 1 ? 0 : -1, move_y = repeated & 2 ? 0 : -1;
  if (n < V::size() || (move_y == 0 && (!all_small<F>(y) || y[0] == 0))) return 0;
  V divisor = load_integers<F>(y), inverse = V(1) / divisor;
  int64_t i = 0;
  for (; i + V::size() <= n; i += V::size()) {
    const T* at = x + (i & move_x);
    if (!all_small<F>(at)) return i;
    if (move_y) {
      if (!all_small<F>(y + i)) return i;
      divisor = load_integers<F>(y + i);
      if (any(divisor == 0)) return i;
      inverse = V(1) / divisor;
    }
    store_integers(out + i, divide_vectors(kind, load_integers<F>(at), divisor, inverse));
  }
  return i;
}

// What a wider loop does before a narrower one may try again.
constexpr int64_t kBlock = 64;

template <class T>
void divide(Division kind, T* out, const T* x, const T* y, int64_t n, uint32_t repeated) {
  const int64_t move_x = repeated & 1 ? 0 : -1, move_y = repeated & 2 ? 0 : -1;
  using Wide = std::conditional_t<sizeof(T) < 4, float, double>;
  for (int64_t i = 0; i < n;) {
    const int64_t start = i;
    const auto run = [&](auto f, int64_t count) HWY_ATTR {
      using F = decltype(f);
      i += divide_run<F>(kind, out + i, x + (i & move_x), y + (i & move_y), count, repeated);
    };
    if constexpr (sizeof(T) == 4) run(float(), n - i);
    run(Wide(), sizeof(T) == 4 ? std::min<int64_t>(n - i, kBlock) : n - i);
    if (i > start) continue;
    for (const int64_t end = std::min(n, i + kBlock); i < end; i++)
      out[i] = lanes::divide_one(kind, x[i & move_x], y[i & move_y]);
  }
}

#endif

void divide_dense(Division kind, DType dtype, void* out, const void* x, const void* y, int64_t n,
                  uint32_t repeated) {
  with_dtype<Integers>(dtype, [&]<class T>(T) HWY_ATTR {
    divide(kind, static_cast<T*>(out), static_cast<const T*>(x), static_cast<const T*>(y), n,
           repeated);
  });
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(divide_dense);
void divide_integers(Division kind, DType dtype, void* out, const void* x, const void* y, int64_t n,
                     uint32_t repeated) {
  HWY_DYNAMIC_DISPATCH(divide_dense)(kind, dtype, out, x, y, n, repeated);
}

}  // namespace taeda::cpu
#endif
