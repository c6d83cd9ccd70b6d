// Tempering a vector of the Mersenne twister's words; included once per instruction set, after
// Highway.
#if defined(TAEDA_CORE_MERSENNE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_CORE_MERSENNE_INL_H_
#undef TAEDA_CORE_MERSENNE_INL_H_
#else
#define TAEDA_CORE_MERSENNE_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::mersenne::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<uint32_t>;

inline __attribute__((always_inline)) hn::Vec<Words> temper(hn::Vec<Words> y) {
  const Words d;
  y = hn::Xor(y, hn::ShiftRight<11>(y));
  y = hn::Xor(y, hn::And(hn::ShiftLeft<7>(y), hn::Set(d, 0x9d2c5680u)));
  y = hn::Xor(y, hn::And(hn::ShiftLeft<15>(y), hn::Set(d, 0xefc60000u)));
  return hn::Xor(y, hn::ShiftRight<18>(y));
}

}  // namespace taeda::mersenne::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
