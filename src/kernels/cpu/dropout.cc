// Dropout in one pass: draws, mask and product together.
#include <mutex>
#include <type_traits>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/random_mask.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kBlock = 1024;
constexpr int64_t kGrain = 32768;

// x * (mask ? scale : 0), as a product: NaN and -0 survive as they do in x * noise.
template <class T, class Compute>
void apply_mask(T* out, const T* x, const uint8_t* mask, Compute scale, int64_t n) {
  if constexpr (std::is_same_v<T, float>)
    return scale_kept(x, mask, scale, out, n);
  else
    for (int64_t i = 0; i < n; i++)
      out[i] = T(static_cast<Compute>(x[i]) * (mask[i] ? scale : Compute(0)));
}

}  // namespace

void dropout(const View& out, const View& mask, const View& x, double p, Generator& generator) {
  const double keep = 1 - p;
  const uint64_t threshold = flip_threshold(keep);
  std::lock_guard<std::mutex> lock(generator.mutex());
  with_dtype<Floating>(x.dtype, "dropout", [&]<class T>(T) {
    using Compute = Wide<T>;
    const Compute scale = static_cast<Compute>(T(Compute(1) / static_cast<Compute>(keep)));
    alignas(64) uint32_t words[2 * kBlock];
    for (int64_t at = 0; at < x.numel; at += kBlock) {
      const int64_t n = x.numel - at < kBlock ? x.numel - at : kBlock;
      uint8_t* drawn = mask.as<uint8_t>() + at;
      T* to = out.as<T>() + at;
      const T* from = x.as<T>() + at;
      generator.fill(words, 2 * n);
      if constexpr (std::is_same_v<T, float>) {
        flip_coins_and_scale(words, threshold, from, scale, to, drawn, n);
      } else {
        flip_coins(words, threshold, drawn, n);
        apply_mask<T, Compute>(to, from, drawn, scale, n);
      }
    }
  });
}

void dropout_backward(const View& gx, const View& gy, const View& mask, double scale) {
  with_dtype<Floating>(gy.dtype, "dropout", [&]<class T>(T) {
    using Compute = Wide<T>;
    const Compute factor = static_cast<Compute>(T(static_cast<Compute>(scale)));
    parallel_for(0, gy.numel, kGrain, [&](int64_t begin, int64_t end) {
      apply_mask<T, Compute>(gx.as<T>() + begin, gy.as<T>() + begin, mask.as<uint8_t>() + begin,
                             factor, end - begin);
    });
  });
}

}  // namespace taeda::cpu
