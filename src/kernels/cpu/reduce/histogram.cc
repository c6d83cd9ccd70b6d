// bincount, histc and the bins of histogram: how often each bin comes.
//
// An addition to a number waits for the one before where that went to the same bin: several
// tables are filled in turn, and added up. Each thread has its own. Counts are integers, so that
// neither changes the result.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/sort/search.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce/histogram.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// The bin of each x as a number that is not rounded yet, and may be `bins` at the upper end; -1
// outside of [low, high].
template <class T>
TD_FN void find_bins(const T* x, T low, T high, T bins, T* out, int64_t n) {
  using V = Vec<T>;
  const auto bin = [&](V v) HWY_ATTR {
    const V scaled = (v - V(low)) * V(bins) / V(high - low);
    const V bin = select(scaled > V(0), scaled, V(0));  // NaN where low and high are equal
    return select((v >= V(low)) & (v <= V(high)), bin, V(-1));
  };
  int64_t i = 0;
  for (; i + V::size() <= n; i += V::size()) store(out + i, bin(load(x + i)));
  if (i < n) store_n(out + i, bin(load_n(x + i, n - i)), n - i);
}

void find_bins_f32(const float* x, float low, float high, float bins, float* out, int64_t n) {
  find_bins(x, low, high, bins, out, n);
}
void find_bins_f64(const double* x, double low, double high, double bins, double* out, int64_t n) {
  find_bins(x, low, high, bins, out, n);
}

uint64_t or_together(const uint64_t* x, int64_t n) {
  const hn::ScalableTag<uint64_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto bits = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) bits = hn::Or(bits, hn::LoadU(d, x + i));
  uint64_t each[hn::MaxLanes(d)], result = 0;
  hn::StoreU(bits, d, each);
  for (int64_t k = 0; k < lanes; k++) result |= each[k];
  for (; i < n; i++) result |= x[i];
  return result;
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(find_bins_f32);
HWY_EXPORT(find_bins_f64);
HWY_EXPORT(or_together);

namespace {

constexpr int64_t kTables = 4, kFewBins = 1 << 8, kManyBins = 1 << 14;

// counts[k] += how often bin(i) is k, for i < n. count(table, step, begin, end) counts the
// bins of a range, each into the table `step` behind the one of the bin before.
template <class Count>
void tally(int64_t n, int64_t bins, int64_t* counts, const Count& count) {
  if (bins > kManyBins || n < 4 * kTables * bins) return count(counts, 0, 0, n);
  const int64_t tables = bins <= kFewBins ? kTables : 1;
  std::mutex adding;
  parallel_for(0, n, 1 << 16, [&](int64_t begin, int64_t end) {
    const Scratch<int64_t> table(tables * bins);
    std::fill_n(table.data(), tables * bins, int64_t{0});
    count(table.data(), tables == 1 ? 0 : bins, begin, end);
    const std::lock_guard<std::mutex> lock(adding);
    for (int64_t t = 0; t < tables; t++) {
      for (int64_t k = 0; k < bins; k++) counts[k] += table[t * bins + k];
    }
  });
}

// bin(0) .. bin(n - 1) counted into four tables in turn.
template <class Bin>
void count_in_turn(int64_t* table, int64_t step, int64_t n, const Bin& bin) {
  int64_t i = 0;
  for (; i + kTables <= n; i += kTables) {
    table[bin(i)]++;
    table[step + bin(i + 1)]++;
    table[2 * step + bin(i + 2)]++;
    table[3 * step + bin(i + 3)]++;
  }
  for (; i < n; i++) table[bin(i)]++;
}

void find_bins(const float* x, float low, float high, float bins, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(find_bins_f32)(x, low, high, bins, out, n);
}
void find_bins(const double* x, double low, double high, double bins, double* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(find_bins_f64)(x, low, high, bins, out, n);
}

}  // namespace

uint64_t bits_in_use(const View& x) {
  const uint64_t* const from = x.as<uint64_t>();
  std::atomic<uint64_t> bits{0};
  parallel_for(0, x.numel, 1 << 16, [&](int64_t begin, int64_t end) {
    bits |= HWY_DYNAMIC_DISPATCH(or_together)(from + begin, end - begin);
  });
  return bits;
}

// By a division, whose rounding may give the bin beside.
void histogram_bins(const View& out, const View& self, const View& edges) {
  with_dtype<WideFloating>(self.dtype, [&]<class T>(T) {
    const T* const edge = edges.as<T>();
    const int64_t last = edges.numel - 2;
    const T low = edge[0], scale = static_cast<T>(last + 1) / (edge[last + 1] - low);
    parallel_for(0, self.numel, 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const T x = self.as<T>()[i], at = (x - low) * scale;
        int64_t bin = at > 0 ? (at < static_cast<T>(last) ? static_cast<int64_t>(at) : last) : 0;
        if (x < edge[bin] && bin > 0)
          bin--;
        else if (x >= edge[bin + 1] && bin < last)
          bin++;
        out.as<int64_t>()[i] = bin;
      }
    });
  });
}

void bincount(const View& out, const View& x) {
  const int64_t* const at = x.as<int64_t>();
  const int64_t bins = out.numel;
  tally(x.numel, bins, out.as<int64_t>(),
        [=](int64_t* table, int64_t step, int64_t begin, int64_t end) {
          constexpr int64_t kBlock = 512;
          alignas(64) int64_t block[kBlock];
          for (; begin < end; begin += kBlock) {
            const int64_t n = std::min(kBlock, end - begin);
            if (!copy_if_inside(block, at + begin, n, bins))
              fail(ErrorKind::kRuntime, kIndicesChanged);
            count_in_turn(table, step, n, [&](int64_t i) { return block[i]; });
          }
        });
}

void histogram(const View& out, const View& x, double low, double high) {
  constexpr int64_t kBlock = 1024;
  with_wide_floating(out.dtype, [&]<class T>(T) {
    const DenseView dense(x, kDTypeOf<T>);
    const T *v = dense.as<T>(), first = static_cast<T>(low), last = static_cast<T>(high);
    const int64_t bins = out.numel;
    const Scratch<int64_t> counts(bins + 1);  // the first: of what is outside
    std::fill_n(counts.data(), bins + 1, int64_t{0});
    tally(x.numel, bins + 1, counts.data(),
          [=](int64_t* table, int64_t step, int64_t begin, int64_t end) {
            alignas(64) T bin[kBlock];
            for (; begin < end; begin += kBlock) {
              const int64_t n = std::min(kBlock, end - begin);
              find_bins(v + begin, first, last, static_cast<T>(bins), bin, n);
              count_in_turn(table, step, n, [&](int64_t i) {
                return 1 + std::min(static_cast<int64_t>(bin[i]), bins - 1);
              });
            }
          });
    T* const to = out.as<T>();
    for (int64_t k = 0; k < bins; k++) to[k] = static_cast<T>(counts[k + 1]);
  });
}

}  // namespace taeda::cpu
#endif
