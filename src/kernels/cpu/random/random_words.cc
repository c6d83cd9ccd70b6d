// What random words become, on vectors.
//
// Coins: a uniform double is k * 2^-53 with k = the lower 53 bits of (word 0, word 1); uniform < p
// is k < threshold, which the upper words decide but for one flip in 2^21.
//
// Integers: with m = floor((2^32 - 1) / range), floor(w m / 2^32) is floor(w / range) or one less.
#include "kernels/cpu/random/random_words.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/random/random_words.cc"
#include "kernels/cpu/simd/simd.h"

#include "core/mersenne-inl.h"
#include "hwy/cache_control.h"
#include "taeda/generator.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using mersenne::HWY_NAMESPACE::temper;
using DU = hn::ScalableTag<uint32_t>;
using DF = hn::ScalableTag<float>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(DU()));

// out[i .. i + lanes) = compute(i) for whole vectors. Where the rest begins.
template <class Compute>
TD_FN int64_t fill_floats(float* out, int64_t n, bool past_cache, const Compute& compute) {
  const DF d;
  int64_t i = 0;
  if (past_cache && reinterpret_cast<uintptr_t>(out) % (kLanes * sizeof(float)) == 0) {
    for (; i + kLanes <= n; i += kLanes) hn::Stream(compute(i), d, out + i);
  } else {
    for (; i + kLanes <= n; i += kLanes) hn::StoreU(compute(i), d, out + i);
  }
  return i;
}

bool below(const uint32_t* words, uint64_t threshold) {
  const uint64_t high = Mt19937::temper(words[0]) & 0x1fffff, low = Mt19937::temper(words[1]);
  return (high << 32 | low) < threshold;
}

class Coins {
 public:
  explicit TD_FN Coins(uint64_t threshold)
      : threshold_(threshold), high_(hn::Set(DU(), static_cast<uint32_t>(threshold >> 32))) {}

  // The lanes whose draw is below the threshold.
  TD_FN hn::Mask<DU> flip(const uint32_t* words) const {
#if HWY_TARGET != HWY_SCALAR
    const DU d;
    const auto upper = hn::ConcatEven(d, hn::LoadU(d, words + kLanes), hn::LoadU(d, words));
    const auto high = hn::And(temper(upper), hn::Set(d, 0x1fffff));
    if (HWY_LIKELY(hn::AllFalse(d, hn::Eq(high, high_)))) return hn::Lt(high, high_);
#endif
    return flip_each(words);
  }

 private:
  HWY_NOINLINE hn::Mask<DU> flip_each(const uint32_t* words) const {
    alignas(64) uint32_t ones[kLanes];
    for (int64_t i = 0; i < kLanes; i++) ones[i] = below(words + 2 * i, threshold_) ? ~0u : 0;
    return hn::MaskFromVec(hn::Load(DU(), ones));
  }

  uint64_t threshold_;
  hn::Vec<DU> high_;
};

// mask[i] = 1 or 0.
TD_FN void store_mask(uint8_t* mask, hn::Mask<DU> ones) {
  const hn::Rebind<uint8_t, DU> d8;
#if HWY_TARGET == HWY_AVX3  // where a mask is bits whatever the lanes
  const hn::Mask<decltype(d8)> bytes{ones.raw};
  hn::StoreU(hn::IfThenElseZero(bytes, hn::Set(d8, 1)), d8, mask);
#else
  const hn::RebindToSigned<DU> di;
  const auto lanes = hn::IfThenElseZero(ones, hn::Set(DU(), 1));
  hn::StoreU(hn::DemoteTo(d8, hn::BitCast(di, lanes)), d8, mask);
#endif
}

// x * (kept ? scale : 0), and prefetches what the loop reads later.
TD_FN hn::Vec<DF> scaled(const float* x, hn::Mask<DU> kept, hn::Vec<DF> scale) {
  const DF d;
  constexpr int64_t kAhead = 1024;
  hwy::Prefetch(x + kAhead);
  return hn::Mul(hn::LoadU(d, x), hn::IfThenElseZero(hn::RebindMask(d, kept), scale));
}

}  // namespace

void flip_words(const uint32_t* words, uint64_t threshold, uint8_t* mask, int64_t n) {
  const Coins coins(threshold);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_mask(mask + i, coins.flip(words + 2 * i));
  for (; i < n; i++) mask[i] = below(words + 2 * i, threshold);
}

void flip_and_scale(const uint32_t* words, uint64_t threshold, const float* x, float scale,
                    float* out, uint8_t* mask, int64_t n, bool past_cache) {
  const Coins coins(threshold);
  const auto factor = hn::Set(DF(), scale);
  int64_t i = fill_floats(out, n, past_cache, [&](int64_t at) HWY_ATTR {
    const auto kept = coins.flip(words + 2 * at);
    store_mask(mask + at, kept);
    return scaled(x + at, kept, factor);
  });
  for (; i < n; i++) {
    mask[i] = below(words + 2 * i, threshold);
    out[i] = x[i] * (mask[i] ? scale : 0.0f);
  }
}

void scale_where(const float* x, const uint8_t* mask, float scale, float* out, int64_t n,
                 bool past_cache) {
  const hn::RebindToSigned<DU> di;
  const hn::Rebind<uint8_t, DU> d8;
  const auto factor = hn::Set(DF(), scale);
  int64_t i = fill_floats(out, n, past_cache, [&](int64_t at) HWY_ATTR {
    const auto kept = hn::Ne(hn::PromoteTo(di, hn::LoadU(d8, mask + at)), hn::Zero(di));
    return scaled(x + at, hn::RebindMask(DU(), kept), factor);
  });
  for (; i < n; i++) out[i] = x[i] * (mask[i] ? scale : 0.0f);
}

namespace {

// The lower 24 bits times 2^-24.
TD_FN hn::Vec<DF> units(const uint32_t* words) {
  const DU d;
  const hn::RebindToSigned<DU> di;
  const auto bits = hn::And(temper(hn::LoadU(d, words)), hn::Set(d, 0xffffff));
  return hn::Mul(hn::ConvertTo(DF(), hn::BitCast(di, bits)), hn::Set(DF(), 0x1p-24f));
}

float unit(uint32_t word) { return Mt19937::unit(Mt19937::temper(word)); }

}  // namespace

void flip_by(const uint32_t* words, const float* p, float* out, int64_t n) {
  const DF d;
  int64_t i = fill_floats(out, n, false, [&](int64_t at) HWY_ATTR {
    return hn::IfThenElseZero(hn::Lt(units(words + at), hn::LoadU(d, p + at)), hn::Set(d, 1.0f));
  });
  for (; i < n; i++) out[i] = unit(words[i]) < p[i] ? 1.0f : 0.0f;
}

bool are_unit(const float* p, int64_t n) {
  const DF d;
  const auto is_chance = [](hn::Vec<DF> x) HWY_ATTR {
    return hn::And(hn::Ge(x, hn::Zero(DF())), hn::Le(x, hn::Set(DF(), 1.0f)));
  };
  auto all = is_chance(hn::Zero(d));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) all = hn::And(all, is_chance(hn::LoadU(d, p + i)));
  bool rest = true;
  for (; i < n; i++) rest &= p[i] >= 0 && p[i] <= 1;
  return rest && hn::AllTrue(d, all);
}

void fill_uniform(const uint32_t* words, float low, float range, float* out, int64_t n) {
  const auto factor = hn::Set(DF(), range), offset = hn::Set(DF(), low);
  int64_t i = 0;
  if (low == 0) {  // rounds as the sum does, and every CPU has it
    i = fill_floats(out, n, false,
                    [&](int64_t at) HWY_ATTR { return hn::Mul(units(words + at), factor); });
  } else if (HWY_NATIVE_FMA) {
    i = fill_floats(out, n, false, [&](int64_t at) HWY_ATTR {
      return hn::MulAdd(units(words + at), factor, offset);
    });
  }
  for (; i < n; i++) out[i] = std::fma(unit(words[i]), range, low);
}

void fill_integers(const uint32_t* words, uint32_t range, int64_t base, int64_t* out, int64_t n) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const DU d;
  const hn::Repartition<uint64_t, DU> dw;
  const auto divisor = hn::BitCast(d, hn::Set(dw, range)),
             inverse = hn::BitCast(d, hn::Set(dw, ~0u / range));
  const auto offset = hn::Set(dw, static_cast<uint64_t>(base));
  // Of the words in the even lanes; the odd ones are zero.
  const auto remainder = [&](hn::Vec<DU> w) HWY_ATTR {
    const auto quotient = hn::BitCast(d, hn::ShiftRight<32>(hn::MulEven(w, inverse)));
    const auto rest = hn::Sub(w, hn::BitCast(d, hn::MulEven(quotient, divisor)));
    return hn::Add(hn::BitCast(dw, hn::Min(rest, hn::Sub(rest, divisor))), offset);
  };
  auto* const to = reinterpret_cast<uint64_t*>(out);
  for (; i + kLanes <= n; i += kLanes) {
    const auto w = temper(hn::LoadU(d, words + i));
    const hn::Half<DU> half;
    const auto low = hn::PromoteTo(dw, hn::LowerHalf(half, w)),
               high = hn::PromoteTo(dw, hn::UpperHalf(half, w));
    hn::StoreU(remainder(hn::BitCast(d, low)), dw, to + i);
    hn::StoreU(remainder(hn::BitCast(d, high)), dw, to + i + kLanes / 2);
  }
#endif
  for (; i < n; i++) out[i] = base + Mt19937::temper(words[i]) % range;
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(flip_words);
HWY_EXPORT(flip_and_scale);
HWY_EXPORT(scale_where);
HWY_EXPORT(flip_by);
HWY_EXPORT(are_unit);
HWY_EXPORT(fill_uniform);
HWY_EXPORT(fill_integers);

void flip_coins(const uint32_t* words, uint64_t threshold, uint8_t* mask, int64_t n) {
  HWY_DYNAMIC_DISPATCH(flip_words)(words, threshold, mask, n);
}
void flip_coins_and_scale(const uint32_t* words, uint64_t threshold, const float* x, float scale,
                          float* out, uint8_t* mask, int64_t n, bool past_cache) {
  HWY_DYNAMIC_DISPATCH(flip_and_scale)(words, threshold, x, scale, out, mask, n, past_cache);
}
void scale_kept(const float* x, const uint8_t* mask, float scale, float* out, int64_t n,
                bool past_cache) {
  HWY_DYNAMIC_DISPATCH(scale_where)(x, mask, scale, out, n, past_cache);
}
void flip_coins(const uint32_t* words, const float* p, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(flip_by)(words, p, out, n);
}
bool are_chances(const float* p, int64_t n) { return HWY_DYNAMIC_DISPATCH(are_unit)(p, n); }
void uniform_floats(const uint32_t* words, float low, float range, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(fill_uniform)(words, low, range, out, n);
}
void small_integers(const uint32_t* words, uint32_t range, int64_t base, int64_t* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(fill_integers)(words, range, base, out, n);
}

}  // namespace taeda::cpu
#endif
