// Vec<T>: the CPU's widest vector of float or double, with operators: the one adapter over Highway.
//
// A file that wants vectors compiles itself once per instruction set (AVX2, AVX-512 and the
// baseline):
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/cpu/this_file.cc"   // the file's own path below src/
//   #include "kernels/cpu/simd/simd.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace taeda::cpu::HWY_NAMESPACE {
//   float sum(const float* x, int64_t n) { ... Vec<float> ... }
//   }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace taeda::cpu {
//   HWY_EXPORT(sum);
//   float sum(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum)(x, n); }
//   }
//   #endif
//
// Which set runs is decided at run time; the environment variable TAEDA_CPU=baseline|avx2|avx512
// lowers it. Arithmetic is IEEE: no fast-math, no flushing of denormals, NaN and infinity as in C.
// Functions on vectors (exp, sin,
// ...) are in simd_math-inl.h, which this header includes.

#include "base/targets.h"
#ifdef HWY_TARGET_INCLUDE
#ifdef TAEDA_SIMD_IS_PRECOMPILED  // Highway and this header, for all sets: only go round the file
#ifndef TAEDA_SIMD_GOES_ROUND
#define TAEDA_SIMD_GOES_ROUND
#undef HIGHWAY_HWY_FOREACH_TARGET_H_
#undef HWY_HIGHWAY_INCLUDED  // as if Highway had not been included for the last set
#include "hwy/foreach_target.h"
#endif
// What highway.h defined stays; the macros of this set are wanted again.
#define HWY_HIGHWAY_INCLUDED
#ifdef HWY_TARGET_TOGGLE
#define HWY_SET_MACROS_PER_TARGET
#undef HWY_HIGHWAY_PER_TARGET
#else
#undef HWY_SET_MACROS_PER_TARGET
#define HWY_HIGHWAY_PER_TARGET
#endif
#include "hwy/ops/set_macros-inl.h"
#else
#include "hwy/foreach_target.h"
#endif
#endif

#if defined(TAEDA_SIMD_IS_PRECOMPILED)
#elif defined(TAEDA_KERNELS_CPU_SIMD_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_KERNELS_CPU_SIMD_H_
#undef TAEDA_KERNELS_CPU_SIMD_H_
#else
#define TAEDA_KERNELS_CPU_SIMD_H_
#endif

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "taeda/dtype.h"

#ifndef TD_FN
#define TD_FN \
  inline __attribute__((always_inline))  // functors and vector functions vanish into their loop
#endif

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class S>
concept Number = std::is_arithmetic_v<S>;

// What comparing vectors gives: one truth value a lane.
template <class T>
struct Mask {
  using Tag = hn::ScalableTag<T>;
  hn::Mask<Tag> raw;
  friend TD_FN Mask operator&(Mask a, Mask b) { return {hn::And(a.raw, b.raw)}; }
  friend TD_FN Mask operator|(Mask a, Mask b) { return {hn::Or(a.raw, b.raw)}; }
  friend TD_FN Mask operator^(Mask a, Mask b) { return {hn::Xor(a.raw, b.raw)}; }
  friend TD_FN Mask operator!(Mask a) { return {hn::Not(a.raw)}; }
  friend TD_FN bool all(Mask a) { return hn::AllTrue(Tag(), a.raw); }
  friend TD_FN bool any(Mask a) { return !hn::AllFalse(Tag(), a.raw); }
};

template <class T>
struct Vec {
  using Element = T;
  using Tag = hn::ScalableTag<T>;
  using Bits = hn::RebindToSigned<Tag>;
  using M = Mask<T>;
  hn::Vec<Tag> raw;

  Vec() = default;
  TD_FN Vec(hn::Vec<Tag> raw) : raw(raw) {}
  // A number in every lane.
  template <Number S>
  TD_FN Vec(S s) : raw(hn::Set(Tag(), static_cast<T>(s))) {}

  static constexpr int64_t size() { return static_cast<int64_t>(hn::MaxLanes(Tag())); }

  friend TD_FN Vec operator+(Vec a, Vec b) { return hn::Add(a.raw, b.raw); }
  friend TD_FN Vec operator-(Vec a, Vec b) { return hn::Sub(a.raw, b.raw); }
  friend TD_FN Vec operator*(Vec a, Vec b) { return hn::Mul(a.raw, b.raw); }
  friend TD_FN Vec operator/(Vec a, Vec b) { return hn::Div(a.raw, b.raw); }
  friend TD_FN Vec operator-(Vec a) { return hn::Neg(a.raw); }
  friend TD_FN M operator<(Vec a, Vec b) { return {hn::Lt(a.raw, b.raw)}; }
  friend TD_FN M operator<=(Vec a, Vec b) { return {hn::Le(a.raw, b.raw)}; }
  friend TD_FN M operator>(Vec a, Vec b) { return {hn::Gt(a.raw, b.raw)}; }
  friend TD_FN M operator>=(Vec a, Vec b) { return {hn::Ge(a.raw, b.raw)}; }
  friend TD_FN M operator==(Vec a, Vec b) { return {hn::Eq(a.raw, b.raw)}; }
  // Highway's own Ne is false for NaN.
  friend TD_FN M operator!=(Vec a, Vec b) { return {hn::Not(hn::Eq(a.raw, b.raw))}; }
  friend TD_FN M isnan(Vec a) { return {hn::IsNaN(a.raw)}; }

  friend TD_FN Vec select(M m, Vec yes, Vec no) { return hn::IfThenElse(m.raw, yes.raw, no.raw); }
  // a * b + c, rounded once.
  friend TD_FN Vec fma(Vec a, Vec b, Vec c) { return hn::MulAdd(a.raw, b.raw, c.raw); }
  friend TD_FN Vec copysign(Vec magnitude, Vec sign) {
    return hn::CopySign(magnitude.raw, sign.raw);
  }
  // A NaN in either argument gives NaN, as torch.maximum and minimum do.
  friend TD_FN Vec max(Vec a, Vec b) { return select(isnan(a), a, raw_max(a, b)); }
  friend TD_FN Vec min(Vec a, Vec b) { return select(isnan(a), a, raw_min(a, b)); }
  // A NaN is ignored where the other argument is a number.
  friend TD_FN Vec fmax(Vec a, Vec b) {
    return select(isnan(b), a, select(isnan(a), b, raw_max(a, b)));
  }
  friend TD_FN Vec fmin(Vec a, Vec b) {
    return select(isnan(b), a, select(isnan(a), b, raw_min(a, b)));
  }
  // The extremes of two numbers. With a NaN among them they are b, as x86's instructions give.
#if HWY_ARCH_X86 && !TD_EMULATED
  friend TD_FN Vec raw_max(Vec a, Vec b) { return hn::Max(a.raw, b.raw); }
  friend TD_FN Vec raw_min(Vec a, Vec b) { return hn::Min(a.raw, b.raw); }
#else
  friend TD_FN Vec raw_max(Vec a, Vec b) { return select(a > b, a, b); }
  friend TD_FN Vec raw_min(Vec a, Vec b) { return select(a < b, a, b); }
#endif
};

template <class T>
TD_FN Vec<T> abs(Vec<T> x) {
  return hn::Abs(x.raw);
}
template <class T>
TD_FN Vec<T> sqrt(Vec<T> x) {
  return hn::Sqrt(x.raw);
}
template <class T>
TD_FN Vec<T> rsqrt(Vec<T> x) {
  return Vec<T>(1) / sqrt(x);
}
template <class T>
TD_FN Vec<T> floor(Vec<T> x) {
  return hn::Floor(x.raw);
}
template <class T>
TD_FN Vec<T> ceil(Vec<T> x) {
  return hn::Ceil(x.raw);
}
template <class T>
TD_FN Vec<T> trunc(Vec<T> x) {
  return hn::Trunc(x.raw);
}
// To the nearest integer, halves to even.
template <class T>
TD_FN Vec<T> round(Vec<T> x) {
  return hn::Round(x.raw);
}
template <class T>
TD_FN Mask<T> isinf(Vec<T> x) {
  return abs(x) == std::numeric_limits<T>::infinity();
}
template <class T>
TD_FN Mask<T> isfinite(Vec<T> x) {
  return abs(x) < std::numeric_limits<T>::infinity();
}
// Vectors are real: their own conjugates and real parts.
template <class T>
TD_FN Vec<T> conj(Vec<T> x) {
  return x;
}
template <class T>
TD_FN Vec<T> real(Vec<T> x) {
  return x;
}
// Whether the sign bit is set: true for -0 and negative NaN too.
template <class T>
TD_FN Mask<T> signbit(Vec<T> x) {
  const typename Vec<T>::Bits bits;
  return {hn::RebindMask(typename Vec<T>::Tag(), hn::Lt(hn::BitCast(bits, x.raw), hn::Zero(bits)))};
}

// --- memory: unaligned, and never a byte beyond the n elements that are named
// -----------------------------------

template <class T>
TD_FN Vec<T> load(const T* p) {
  return hn::LoadU(typename Vec<T>::Tag(), p);
}
template <class T>
TD_FN void store(T* p, Vec<T> x) {
  hn::StoreU(x.raw, typename Vec<T>::Tag(), p);
}

// Whether masked loads and stores leave memory alone where the mask is false: other sets load a
// whole vector, then blend.
constexpr bool kMaskedLoads = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

// The first n < size() lanes; the others are zero.
template <class T>
TD_FN Vec<T> load_n(const T* p, int64_t n) {
  const typename Vec<T>::Tag d;
  if constexpr (kMaskedLoads) return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, p);
  alignas(64) T buffer[Vec<T>::size()] = {};
  std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(T));
  return hn::Load(d, buffer);
}
template <class T>
TD_FN void store_n(T* p, Vec<T> x, int64_t n) {
  const typename Vec<T>::Tag d;
  if constexpr (kMaskedLoads) {
    hn::BlendedStore(x.raw, hn::FirstN(d, static_cast<size_t>(n)), d, p);
    return;
  }
  alignas(64) T buffer[Vec<T>::size()];
  hn::Store(x.raw, d, buffer);
  std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(T));
}

// One byte a lane, 0 or 1.
template <class T>
TD_FN void store(bool* p, Mask<T> m) {
  using Unsigned = hn::RebindToUnsigned<hn::ScalableTag<T>>;
  const Unsigned d;
  const hn::Rebind<uint8_t, Unsigned> bytes;
  const auto ones = hn::IfThenElseZero(hn::RebindMask(d, m.raw), hn::Set(d, 1));
  hn::StoreU(hn::TruncateTo(bytes, ones), bytes, reinterpret_cast<uint8_t*>(p));
}
template <class T>
TD_FN void store_n(bool* p, Mask<T> m, int64_t n) {
  bool buffer[Vec<T>::size()];
  store(buffer, m);
  std::memcpy(p, buffer, static_cast<size_t>(n));
}

// Reduced floating types widen to float on load and round to nearest even on store.
#if TD_EMULATED  // whose half has no infinity
TD_FN Vec<float> load(const Half* p) {
  float x[Vec<float>::size()];
  for (int64_t i = 0; i < Vec<float>::size(); i++) x[i] = static_cast<float>(p[i]);
  return load(x);
}
TD_FN void store(Half* p, Vec<float> v) {
  float x[Vec<float>::size()];
  store(x, v);
  for (int64_t i = 0; i < Vec<float>::size(); i++) p[i] = Half(x[i]);
}
#else
TD_FN Vec<float> load(const Half* p) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> halves;
  return hn::PromoteTo(d, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(p)));
}
TD_FN void store(Half* p, Vec<float> x) {
  const hn::Rebind<hwy::float16_t, hn::ScalableTag<float>> halves;
  hn::StoreU(hn::DemoteTo(halves, x.raw), halves, reinterpret_cast<hwy::float16_t*>(p));
}
#endif
TD_FN Vec<float> load(const BFloat16* p) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> words;
  const hn::Rebind<uint16_t, decltype(d)> shorts;
  const auto wide = hn::PromoteTo(words, hn::LoadU(shorts, reinterpret_cast<const uint16_t*>(p)));
  return hn::BitCast(d, hn::ShiftLeft<16>(wide));
}
TD_FN void store(BFloat16* p, Vec<float> x) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> words;
  const hn::Rebind<uint16_t, decltype(d)> shorts;
  const auto u = hn::BitCast(words, x.raw);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(words, 1));
  const auto rounded = hn::Add(hn::Add(u, hn::Set(words, 0x7fff)), odd);
  const auto quiet = hn::Or(u, hn::Set(words, 0x400000));  // keeps a NaN a NaN
  const auto result = hn::IfThenElse(hn::RebindMask(words, isnan(x).raw), quiet, rounded);
  hn::StoreU(hn::TruncateTo(shorts, hn::ShiftRight<16>(result)), shorts,
             reinterpret_cast<uint16_t*>(p));
}

// Applies a scalar function to each lane: the way out for functions without a vector form.
template <class T, class F>
TD_FN Vec<T> map_lanes(F f, Vec<T> x) {
  alignas(64) T a[Vec<T>::size()];
  store(a, x);
  for (T& v : a) v = f(v);
  return load(a);
}
template <class T, class F>
TD_FN Vec<T> map_lanes(F f, Vec<T> x, Vec<T> y) {
  alignas(64) T a[Vec<T>::size()], b[Vec<T>::size()];
  store(a, x);
  store(b, y);
  for (int64_t i = 0; i < Vec<T>::size(); i++) a[i] = f(a[i], b[i]);
  return load(a);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#include "kernels/cpu/simd/simd_math-inl.h"

#endif  // TAEDA_KERNELS_CPU_SIMD_H_
