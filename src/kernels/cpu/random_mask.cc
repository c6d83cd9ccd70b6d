// Coin flips from random words, and their product with a tensor: uniform < p in integers, on
// vectors.
//
// A uniform double is k * 2^-53 with k = the lower 53 bits of (word 0, word 1); k < threshold is
// compared in two halves.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/random_mask.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/random_mask.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using DU = hn::ScalableTag<uint32_t>;
using DF = hn::ScalableTag<float>;

bool below(const uint32_t* words, uint64_t threshold) {
  return ((uint64_t{words[0]} << 32 | words[1]) & ((uint64_t{1} << 53) - 1)) < threshold;
}

// All bits set in the lanes whose draw is below the threshold.
auto below_vector(const uint32_t* words, hn::Vec<DU> high_threshold, hn::Vec<DU> low_threshold) {
  const DU d;
  hn::Vec<DU> high, low;
  hn::LoadInterleaved2(d, words, high, low);
  high = hn::And(high, hn::Set(d, 0x1fffff));
  const auto less = hn::Lt(high, high_threshold);
  const auto tie = hn::And(hn::Eq(high, high_threshold), hn::Lt(low, low_threshold));
  return hn::Or(less, tie);
}

void store_mask(uint8_t* mask, hn::Vec<DU> ones) {
  const hn::RebindToSigned<DU> di;
  const hn::Rebind<uint8_t, DU> d8;
  hn::StoreU(hn::DemoteTo(d8, hn::BitCast(di, ones)), d8, mask);
}

void flip(const uint32_t* words, uint64_t threshold, uint8_t* mask, int64_t n) {
  const DU d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto high = hn::Set(d, static_cast<uint32_t>(threshold >> 32)),
             low = hn::Set(d, static_cast<uint32_t>(threshold));
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    store_mask(mask + i, hn::IfThenElseZero(below_vector(words + 2 * i, high, low), hn::Set(d, 1)));
  }
  for (; i < n; i++) mask[i] = below(words + 2 * i, threshold);
}

void flip_and_scale(const uint32_t* words, uint64_t threshold, const float* x, float scale,
                    float* out, uint8_t* mask, int64_t n) {
  const DU d;
  const DF df;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto high = hn::Set(d, static_cast<uint32_t>(threshold >> 32)),
             low = hn::Set(d, static_cast<uint32_t>(threshold));
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    const auto keep = below_vector(words + 2 * i, high, low);
    store_mask(mask + i, hn::IfThenElseZero(keep, hn::Set(d, 1)));
    const auto factor = hn::IfThenElseZero(hn::RebindMask(df, keep), hn::Set(df, scale));
    hn::StoreU(hn::Mul(hn::LoadU(df, x + i), factor), df, out + i);
  }
  for (; i < n; i++) {
    mask[i] = below(words + 2 * i, threshold);
    out[i] = x[i] * (mask[i] ? scale : 0.0f);
  }
}

void scale_kept(const float* x, const uint8_t* mask, float scale, float* out, int64_t n) {
  const DF df;
  const hn::RebindToSigned<DF> di;
  const hn::Rebind<uint8_t, DF> d8;
  const auto step = static_cast<int64_t>(hn::Lanes(df));
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    const auto kept = hn::Ne(hn::PromoteTo(di, hn::LoadU(d8, mask + i)), hn::Zero(di));
    const auto factor = hn::IfThenElseZero(hn::RebindMask(df, kept), hn::Set(df, scale));
    hn::StoreU(hn::Mul(hn::LoadU(df, x + i), factor), df, out + i);
  }
  for (; i < n; i++) out[i] = x[i] * (mask[i] ? scale : 0.0f);
}

}  // namespace

void flip_target(const uint32_t* words, uint64_t threshold, uint8_t* mask, int64_t n) {
  flip(words, threshold, mask, n);
}
void flip_and_scale_target(const uint32_t* words, uint64_t threshold, const float* x, float scale,
                           float* out, uint8_t* mask, int64_t n) {
  flip_and_scale(words, threshold, x, scale, out, mask, n);
}
void scale_kept_target(const float* x, const uint8_t* mask, float scale, float* out, int64_t n) {
  scale_kept(x, mask, scale, out, n);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(flip_target);
HWY_EXPORT(flip_and_scale_target);
HWY_EXPORT(scale_kept_target);

void flip_coins(const uint32_t* words, uint64_t threshold, uint8_t* mask, int64_t n) {
  HWY_DYNAMIC_DISPATCH(flip_target)(words, threshold, mask, n);
}
void flip_coins_and_scale(const uint32_t* words, uint64_t threshold, const float* x, float scale,
                          float* out, uint8_t* mask, int64_t n) {
  HWY_DYNAMIC_DISPATCH(flip_and_scale_target)(words, threshold, x, scale, out, mask, n);
}
void scale_kept(const float* x, const uint8_t* mask, float scale, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(scale_kept_target)(x, mask, scale, out, n);
}

}  // namespace taeda::cpu
#endif
