#include "base/interrupt.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/resample_rows.cc"
#include "kernels/cpu/simd/simd.h"

#include <algorithm>

#include "kernels/cpu/image/resample_rows.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using Floats = Vec<float>;
constexpr int64_t kLanes = Floats::size();

int64_t float_lanes() { return kLanes; }

TD_FN Floats look_up(Floats table, const int32_t* index) {
  return hn::TableLookupLanes(table.raw, hn::SetTableIndices(Floats::Tag(), index));
}

TD_FN Floats gather_floats(const RowSums::Chunk& chunk, const int32_t* index, const float* x) {
  const float* from = x + chunk.base;
  if (chunk.kind == RowSums::Kind::kOneVector) return look_up(load(from), index);
  alignas(64) float lanes[kLanes];
  if (chunk.kind == RowSums::Kind::kTwoVectors) {
    const Floats::Bits ints;
    const auto at = hn::LoadU(ints, index);
    const auto low = hn::And(at, hn::Set(ints, static_cast<int32_t>(kLanes - 1)));
    const Mask<float> second{
        hn::RebindMask(Floats::Tag(), hn::Gt(at, hn::Set(ints, static_cast<int32_t>(kLanes - 1))))};
    const auto permutation = hn::IndicesFromVec(Floats::Tag(), low);
    return select(second, Floats(hn::TableLookupLanes(load(from + kLanes).raw, permutation)),
                  Floats(hn::TableLookupLanes(load(from).raw, permutation)));
  }
  for (int64_t i = 0; i < kLanes; i++) lanes[i] = from[index[i]];
  return load(lanes);
}

void along_row(const RowSums& s, const float* x, float* y) {
  const RowSums::Chunk* chunk = s.chunks.data();
  const int32_t* index = s.index.data();
  const float* weight = s.weight.data();
  Looks looks;
  for (int64_t o = 0; o < s.out; o += kLanes) {
    looks.after(s.count * kLanes);
    Floats total(0);
    for (int64_t k = 0; k < s.count; k++, chunk++, index += kLanes, weight += kLanes) {
      if (chunk->kind == RowSums::Kind::kNothing) continue;
      const Floats w = load(weight), sum = fma(gather_floats(*chunk, index, x), w, total);
      total = chunk->has_gaps ? select(isnan(w), total, sum) : sum;
    }
    if (s.out - o >= kLanes)
      store(y + o, total);
    else
      store_n(y + o, total, s.out - o);
  }
}

TD_FN Floats sum_at(const float* const* rows, const float* weight, int64_t count, int64_t i) {
  Floats total = load(rows[0] + i) * Floats(weight[0]);
  for (int64_t k = 1; k < count; k++) total = fma(load(rows[k] + i), Floats(weight[k]), total);
  return total;
}

void of_rows(const float* const* rows, const float* weight, int64_t count, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, sum_at(rows, weight, count, i));
  if (i == n) return;
  Floats total = load_n(rows[0] + i, n - i) * Floats(weight[0]);
  for (int64_t k = 1; k < count; k++)
    total = fma(load_n(rows[k] + i, n - i), Floats(weight[k]), total);
  store_n(y + i, total, n - i);
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(float_lanes);
HWY_EXPORT(along_row);
HWY_EXPORT(of_rows);

namespace {

// How one summand of a block's results is read: by vectors where the elements lie close together.
// `index` holds positions, -1 where there is no summand, and becomes relative.
RowSums::Chunk arrange_chunk(int64_t in, int32_t* index, int64_t lanes) {
  RowSums::Chunk chunk{0, RowSums::Kind::kNothing, false};
  int64_t least = in, most = -1;
  for (int64_t i = 0; i < lanes; i++) {
    chunk.has_gaps |= index[i] < 0;
    if (index[i] < 0) continue;
    least = std::min<int64_t>(least, index[i]), most = std::max<int64_t>(most, index[i]);
  }
  if (most < 0) return chunk;
  const auto fits = [&](int64_t width) {
    chunk.base = std::min(least, in - width);
    return chunk.base >= 0 && most - chunk.base < width;
  };
  if (fits(lanes))
    chunk.kind = RowSums::Kind::kOneVector;
  else if (fits(2 * lanes))
    chunk.kind = RowSums::Kind::kTwoVectors;
  else
    chunk.kind = RowSums::Kind::kFarApart, chunk.base = 0;
  for (int64_t i = 0; i < lanes; i++)
    index[i] = index[i] < 0 ? 0 : index[i] - static_cast<int32_t>(chunk.base);
  return chunk;
}

}  // namespace

RowSums arrange_sums(int64_t in, int64_t out, const std::vector<int64_t>& first,
                     const std::vector<int64_t>& from, const std::vector<float>& weight) {
  RowSums s;
  s.in = in, s.out = out, s.lanes = HWY_DYNAMIC_DISPATCH(float_lanes)();
  for (size_t o = 0; o < static_cast<size_t>(out); o++)
    s.count = std::max(s.count, first[o + 1] - first[o]);
  Looks looks;
  for (int64_t block = 0; block < out; block += s.lanes) {
    looks.after(s.count * s.lanes);
    for (int64_t k = 0; k < s.count; k++) {
      for (int64_t i = 0; i < s.lanes; i++) {
        const size_t o = static_cast<size_t>(std::min(block + i, out - 1));
        const bool here = k < first[o + 1] - first[o];
        const size_t at = static_cast<size_t>(first[o] + k);
        s.index.push_back(here ? static_cast<int32_t>(from[at]) : -1);
        s.weight.push_back(here ? weight[at] : std::numeric_limits<float>::quiet_NaN());
      }
      s.chunks.push_back(arrange_chunk(in, s.index.data() + s.index.size() - s.lanes, s.lanes));
    }
  }
  return s;
}

void sum_along_row(const RowSums& sums, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(along_row)(sums, x, y);
}
void sum_of_rows(const float* const* rows, const float* weight, int64_t count, float* y,
                 int64_t n) {
  HWY_DYNAMIC_DISPATCH(of_rows)(rows, weight, count, y, n);
}

}  // namespace taeda::cpu
#endif
