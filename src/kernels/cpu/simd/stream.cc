#include "kernels/cpu/simd/stream.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/stream.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

void stream_out(void* dst, const void* src, int64_t bytes) {
#if HWY_TARGET == HWY_SCALAR
  std::memcpy(dst, src, static_cast<size_t>(bytes));
#else
  const hn::ScalableTag<uint8_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  uint8_t* y = static_cast<uint8_t*>(dst);
  const uint8_t* x = static_cast<const uint8_t*>(src);
  // A line that is written in part would be fetched after all: whole ones only.
  constexpr uintptr_t kLine = 64;
  const auto head = std::min<int64_t>(
      bytes, static_cast<int64_t>((kLine - reinterpret_cast<uintptr_t>(y) % kLine) % kLine));
  std::memcpy(y, x, static_cast<size_t>(head));
  const int64_t end = head + (bytes - head) / static_cast<int64_t>(kLine) * kLine;
  for (int64_t i = head; i < end; i += lanes) hn::Stream(hn::LoadU(d, x + i), d, y + i);
  std::memcpy(y + end, x + end, static_cast<size_t>(bytes - end));
#endif
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "hwy/cache_control.h"

namespace taeda::cpu {

HWY_EXPORT(stream_out);
void stream(void* dst, const void* src, int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(stream_out)(dst, src, bytes);
}

void StreamFence::fence() { hwy::FlushStream(); }

}  // namespace taeda::cpu
#endif
