// Dropout in one pass: draws, mask and product together.
#include <type_traits>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/random/random_draws.h"
#include "kernels/cpu/random/random_words.h"
#include "kernels/cpu/simd/stream.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kGrain = 32768;

// x * (mask ? scale : 0), as a product: NaN and -0 survive as they do in x * noise.
template <class T, class Compute>
void apply_mask(T* out, const T* x, const uint8_t* mask, Compute scale, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    out[i] = T(static_cast<Compute>(x[i]) * (mask[i] ? scale : Compute(0)));
}

// Whether the result should pass by the cache: x, out and the mask are touched.
bool worth_streaming(const View& x) {
  return cpu::worth_streaming(x.numel * (2 * item_size(x.dtype) + 1));
}

}  // namespace

void dropout(const View& out, const View& mask, const View& x, double p, Generator& generator) {
  const double keep = 1 - p;
  const uint64_t threshold = flip_threshold(keep);
  const bool past_cache = worth_streaming(x);
  GeneratorLock lock(generator);
  with_dtype<Floating>(x.dtype, "dropout", [&]<class T>(T) {
    using Compute = Wide<T>;
    const Compute scale = static_cast<Compute>(T(Compute(1) / static_cast<Compute>(keep)));
    draw_words(lock, x.numel, 2, [&](const uint32_t* words, int64_t begin, int64_t n) {
      uint8_t* const drawn = mask.as<uint8_t>() + begin;
      T* const to = out.as<T>() + begin;
      const T* const from = x.as<T>() + begin;
      if constexpr (std::is_same_v<T, float>) {
        StreamFence fence;
        fence.pending = past_cache;
        flip_coins_and_scale(words, threshold, from, scale, to, drawn, n, past_cache);
      } else {
        flip_coins(words, threshold, drawn, n);
        apply_mask<T, Compute>(to, from, drawn, scale, n);
      }
    });
  });
}

void dropout_backward(const View& gx, const View& gy, const View& mask, double scale) {
  const bool past_cache = worth_streaming(gy);
  with_dtype<Floating>(gy.dtype, "dropout", [&]<class T>(T) {
    using Compute = Wide<T>;
    const Compute factor = static_cast<Compute>(T(static_cast<Compute>(scale)));
    parallel_for(0, gy.numel, kGrain, [&](int64_t begin, int64_t end) {
      T* const to = gx.as<T>() + begin;
      const T* const from = gy.as<T>() + begin;
      const uint8_t* const drawn = mask.as<uint8_t>() + begin;
      if constexpr (std::is_same_v<T, float>) {
        StreamFence fence;
        fence.pending = past_cache;
        scale_kept(from, drawn, factor, to, end - begin, past_cache);
      } else {
        apply_mask<T, Compute>(to, from, drawn, factor, end - begin);
      }
    });
  });
}

}  // namespace taeda::cpu
