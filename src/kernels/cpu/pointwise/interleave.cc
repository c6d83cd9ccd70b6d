#include "kernels/cpu/pointwise/interleave.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/parallel.h"
#include "kernels/cpu/index/gather.h"
#include "kernels/cpu/simd/stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/interleave.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// What can be done by whole vectors; returns for how many i.
template <class T>
int64_t interleave_vectors(T* out, const char* const* in, int64_t count, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (lanes == 1 || count < 2 || count > 4) return 0;
  const auto load = [&](int64_t k, int64_t i)
                        HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const T*>(in[k]) + i); };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    T* const to = out + i * count;
    if (count == 2)
      hn::StoreInterleaved2(load(0, i), load(1, i), d, to);
    else if (count == 3)
      hn::StoreInterleaved3(load(0, i), load(1, i), load(2, i), d, to);
    else
      hn::StoreInterleaved4(load(0, i), load(1, i), load(2, i), load(3, i), d, to);
  }
  return i;
}
int64_t interleave_any(void* out, const char* const* in, int64_t count, int64_t itemsize,
                       int64_t n) {
  return itemsize == 4   ? interleave_vectors(static_cast<uint32_t*>(out), in, count, n)
         : itemsize == 8 ? interleave_vectors(static_cast<uint64_t*>(out), in, count, n)
                         : 0;
}

constexpr int64_t kMostTimes = 8;
template <class T>
int64_t repeat_vectors(T* out, const T* in, int64_t times, int64_t n, bool streamed) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> tag;
  using Lane = hn::TFromD<decltype(tag)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (lanes == 1 || times > kMostTimes) return 0;
  // Which element stands in each lane of the `times` vectors that one vector gives.
  alignas(64) Lane table[kMostTimes * static_cast<int64_t>(hn::MaxLanes(d))];
  Lane* index = table;
  for (int64_t j = 0; j < lanes; j++) {
    for (int64_t k = 0; k < times; k++) *index++ = static_cast<Lane>(j);
  }
  const bool past_cache = streamed && reinterpret_cast<uintptr_t>(out) % 64 == 0;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, in + i);
    T* const to = out + i * times;
    for (int64_t k = 0; k < times * lanes; k += lanes) {
      const auto spread = hn::TableLookupLanes(v, hn::SetTableIndices(d, table + k));
      if (past_cache)
        hn::Stream(spread, d, to + k);
      else
        hn::StoreU(spread, d, to + k);
    }
  }
  return i;
}
int64_t repeat_any(void* out, const void* in, int64_t times, int64_t itemsize, int64_t n,
                   bool streamed) {
  const auto run = [&]<class T>(T) {
    return repeat_vectors(static_cast<T*>(out), static_cast<const T*>(in), times, n, streamed);
  };
  return itemsize == 4 ? run(uint32_t()) : itemsize == 8 ? run(uint64_t()) : 0;
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
namespace {

HWY_EXPORT(interleave_any);
HWY_EXPORT(repeat_any);

constexpr int64_t kGrain = 1 << 15;  // elements of the result

void interleave_block(char* out, const char* const* in, int64_t count, int64_t itemsize,
                      int64_t n) {
  const int64_t done = HWY_DYNAMIC_DISPATCH(interleave_any)(out, in, count, itemsize, n);
  if (done == n) return;
  for (int64_t k = 0; k < count; k++)
    scatter_items(out + (done * count + k) * itemsize, in[k] + done * itemsize, itemsize,
                  count * itemsize, n - done);
}

}  // namespace

void interleave(void* out, const void* const* in, int64_t count, int64_t itemsize, int64_t n) {
  const int64_t step = count * itemsize;  // bytes of the result for each i
  const bool streamed = worth_streaming(2 * n * step) && step <= kStreamBytes / 8;
  const int64_t block = streamed ? kStreamBytes / step : kGrain;
  parallel_for(0, n, std::max<int64_t>(1, kGrain / count), [&](int64_t begin, int64_t end) {
    StreamFence fence;
    fence.pending = streamed;
    alignas(64) char buffer[kStreamBytes];
    const std::unique_ptr<const char*[]> at(new const char*[static_cast<size_t>(count)]);
    for (int64_t i = begin; i < end; i += block) {
      const int64_t m = std::min(block, end - i);
      char* const to = static_cast<char*>(out) + i * step;
      for (int64_t k = 0; k < count; k++)
        at[static_cast<size_t>(k)] = static_cast<const char*>(in[k]) + i * itemsize;
      interleave_block(streamed ? buffer : to, at.get(), count, itemsize, m);
      if (streamed) stream(to, buffer, m * step);
    }
  });
}

void repeat_items(void* out, const void* in, int64_t times, int64_t itemsize, int64_t n,
                  bool streamed) {
  const int64_t done = HWY_DYNAMIC_DISPATCH(repeat_any)(out, in, times, itemsize, n, streamed);
  with_item_type(itemsize, [&]<class T>(T) {
    T* to = static_cast<T*>(out) + done * times;
    for (int64_t i = done; i < n; i++, to += times) {
      T value;
      std::memcpy(&value, static_cast<const T*>(in) + i, sizeof value);
      for (int64_t k = 0; k < times; k++) to[k] = value;
    }
  });
}

}  // namespace taeda::cpu
#endif
