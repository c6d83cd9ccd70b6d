#include "core/mersenne.h"

#include "base/targets.h"
#include "taeda/generator.h"
#include "taeda/tensor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/mersenne.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "core/mersenne-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::mersenne::HWY_NAMESPACE {

constexpr int64_t kWords = Mt19937::kWords;

hn::Vec<Words> twisted(hn::Vec<Words> here, hn::Vec<Words> after, hn::Vec<Words> far) {
  const Words d;
  const auto one = hn::Set(d, 1);
  const auto mixed =
      hn::OrAnd(hn::And(here, hn::Set(d, 0x80000000u)), after, hn::Set(d, 0x7fffffffu));
  const auto odd = hn::TestBit(after, one);
  return hn::Xor(hn::Xor(far, hn::ShiftRight<1>(mixed)),
                 hn::IfThenElseZero(odd, hn::Set(d, 0x9908b0dfu)));
}

void twist_words(uint32_t* words, int64_t blocks) {
  const Words d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));  // divides kWords
  uint32_t* const end = words + (blocks + 1) * kWords;
  auto here = hn::LoadU(d, words);
  for (uint32_t* out = words + kWords; out < end; out += step) {
    const auto next = hn::LoadU(d, out - kWords + step);
#if HWY_TARGET == HWY_AVX3  // loads of 64 bytes that cross lines take twice as long
    const hn::Vec<Words> after{_mm512_alignr_epi32(next.raw, here.raw, 1)};
#else
    const auto after = hn::LoadU(d, out - kWords + 1);
#endif
    hn::StoreU(twisted(here, after, hn::LoadU(d, out - 227)), d, out);
    here = next;
  }
}

void temper_words(const uint32_t* in, uint32_t* out, int64_t n) {
  const Words d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; !TD_EMULATED && i + step <= n; i += step)
    hn::StoreU(temper(hn::LoadU(d, in + i)), d, out + i);
  for (; i < n; i++) out[i] = Mt19937::temper(in[i]);
}

}  // namespace taeda::mersenne::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::mersenne {

HWY_EXPORT(twist_words);
HWY_EXPORT(temper_words);

void twist(uint32_t* words, int64_t blocks) { HWY_DYNAMIC_DISPATCH(twist_words)(words, blocks); }
void temper(const uint32_t* in, uint32_t* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(temper_words)(in, out, n);
}

}  // namespace taeda::mersenne
#endif
