#include "kernels/cpu/pointwise/flags.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/flags.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<uint8_t>;

// Fewer bytes than a vector has, with zeros behind them.
TD_FN hn::Vec<D> load_rest(const uint8_t* x, int64_t n) {
  alignas(64) uint8_t rest[hn::MaxLanes(D())] = {};
  std::memcpy(rest, x, static_cast<size_t>(n));
  return hn::Load(D(), rest);
}

int64_t count_bytes(const uint8_t* x, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zeros = [=](hn::Vec<D> v) HWY_ATTR {
    return static_cast<int64_t>(hn::CountTrue(d, hn::Eq(v, hn::Zero(d))));
  };
  int64_t i = 0, count = 0;
  for (; i + lanes <= n; i += lanes) count += lanes - zeros(hn::LoadU(d, x + i));
  const int64_t rest = n - i;
  if (rest == 0) return count;
  if (i == 0) return lanes - zeros(load_rest(x, n));
  // The last vector, of which all but `rest` were counted.
  const auto counted = hn::FirstN(d, static_cast<size_t>(lanes - rest));
  const auto none = hn::Eq(hn::LoadU(d, x + n - lanes), hn::Zero(d));
  return count + rest - static_cast<int64_t>(hn::CountTrue(d, hn::AndNot(counted, none)));
}

// Four vectors between two looks.
bool any_byte(const uint8_t* x, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [=](int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); };
  const auto found = [=](hn::Vec<D> v) HWY_ATTR { return !hn::AllTrue(d, hn::Eq(v, hn::Zero(d))); };
  if (n < lanes) return found(load_rest(x, n));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    if (found(hn::Or(hn::Or(load(i), load(i + lanes)),
                     hn::Or(load(i + 2 * lanes), load(i + 3 * lanes)))))
      return true;
  }
  for (; i + lanes <= n; i += lanes)
    if (found(load(i))) return true;
  return found(load(n - lanes));  // some of them for the second time
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
namespace {

const uint8_t* bytes_of(const Bool* flags) { return reinterpret_cast<const uint8_t*>(flags); }

}  // namespace

HWY_EXPORT(count_bytes);
HWY_EXPORT(any_byte);

int64_t count_true(const Bool* flags, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(count_bytes)(bytes_of(flags), n);
}
bool any_true(const Bool* flags, int64_t n) {
  uint64_t first[2] = {};  // where the answer often lies, without a call
  if (n >= 16) std::memcpy(first, flags, 16);
  if (first[0] | first[1]) return true;
  return HWY_DYNAMIC_DISPATCH(any_byte)(bytes_of(flags), n);
}
bool all_true(const Bool* flags, int64_t n) {
  return std::memchr(flags, 0, static_cast<size_t>(n)) == nullptr;
}

}  // namespace taeda::cpu
#endif
