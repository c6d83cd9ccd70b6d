// Attention of few queries, as in decoding: keys and values are read once, as they lie in memory,
// and nothing is packed.
//
// A task is a head of keys, or a part of its keys where heads are few, with all queries that read
// it. It goes through blocks of keys with a running maximum, as attention.cc does:
//
//   s = scale q k, p = exp(s - max), o = sum p v / sum p
//
// Parts are combined in their order, so that the bits do not depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/gemm/gemv.h"
#include "kernels/cpu/simd/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/attention_few.cc"
#include "kernels/cpu/simd/simd.h"

#ifndef TAEDA_KERNELS_CPU_ATTENTION_FEW_ONCE
#define TAEDA_KERNELS_CPU_ATTENTION_FEW_ONCE
namespace taeda::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The running maximum of a row's scores, and the sum of its weights.
struct RowState {
  float high = -kInfinity, sum = 0;
};

// Values of `keys` keys, `row` elements apart, that are added up with weights.
struct Values {
  DType dtype;
  const void* data;
  int64_t features, row, keys;
};

}  // namespace
}  // namespace taeda::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using V = Vec<float>;
constexpr int64_t kLanes = V::size();

// sums[i] += sum over keys of weights[key] * values[key * row + i]
template <int kVectors, class T>
TD_FN void add_columns(float* sums, const float* weights, const T* values, int64_t row,
                       int64_t keys) {
  V sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; v++) sum[v] = load(sums + v * kLanes);
  for (int64_t k = 0; k < keys; k++) {
    const V weight(weights[k]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++)
      sum[v] = fma(weight, load(values + k * row + v * kLanes), sum[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; v++) store(sums + v * kLanes, sum[v]);
}
template <class T>
void add_values(float* sums, int64_t features, const float* weights, const T* values, int64_t row,
                int64_t keys) {
  int64_t at = 0;
  for (; at + 4 * kLanes <= features; at += 4 * kLanes)
    add_columns<4>(sums + at, weights, values + at, row, keys);
  for (; at + kLanes <= features; at += kLanes)
    add_columns<1>(sums + at, weights, values + at, row, keys);
  for (; at < features; at++)
    for (int64_t k = 0; k < keys; k++)
      sums[at] += weights[k] * static_cast<float>(values[k * row + at]);
}

}  // namespace

// n scores become weights; returns what earlier sums are to be multiplied by. The lanes after them
// are overwritten.
float softmax_weights(float* scores, int64_t n, RowState& state) {
  std::fill_n(scores + n, (n + kLanes - 1) / kLanes * kLanes - n, -kInfinity);
  V high(state.high);
  for (int64_t i = 0; i < n; i += kLanes) high = raw_max(load(scores + i), high);
  const float top = hn::GetLane(hn::MaxOfLanes(V::Tag(), high.raw));
  const float shift = top == -kInfinity ? 0 : top;  // no key yet: all weights are 0
  V sum(0);
  for (int64_t i = 0; i < n; i += kLanes) {
    const V e = exp(load(scores + i) - V(shift));
    store(scores + i, e);
    sum = sum + e;
  }
  const float factor = std::exp(state.high - shift);
  state.high = top;
  state.sum = state.sum * factor + hn::GetLane(hn::SumOfLanes(V::Tag(), sum.raw));
  return factor;
}

// sums += weights values
void add_weighted(float* sums, const float* weights, const Values& v) {
  with_dtype<Types<float, BFloat16>>(v.dtype, [&]<class T>(T) {
    add_values(sums, v.features, weights, static_cast<const T*>(v.data), v.row, v.keys);
  });
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(softmax_weights);
HWY_EXPORT(add_weighted);

namespace {

constexpr int64_t kKeys = 256;                   // a block's, and a part's at least
constexpr int64_t kEnoughTasks = 8;              // heads are not cut where there are so many
constexpr int64_t kTaskWork = int64_t{1} << 16;  // multiplications that are worth a thread

int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

class FewQueries {
 public:
  FewQueries(const View& out, const View& logsumexp, const Attention& a)
      : a_(a),
        out_(out),
        lse_(logsumexp.as<float>()),
        heads_(a.query.sizes[1]),
        groups_(a.key.sizes[1]),
        queries_(a.query.sizes[2]),
        keys_(a.causal ? std::min(a.key.sizes[2], queries_) : a.key.sizes[2]),
        features_(a.query.sizes[3]),
        values_(a.value.sizes[3]),
        rows_(heads_ / groups_ * queries_) {
    const int64_t heads = a.query.sizes[0] * groups_;
    parts_ = std::clamp<int64_t>(blocks_of(kEnoughTasks, std::max<int64_t>(heads, 1)), 1,
                                 std::max<int64_t>(keys_ / kKeys, 1));
    part_keys_ = blocks_of(keys_, parts_);
  }

  void run() const {
    const int64_t heads = a_.query.sizes[0] * groups_, per_task = rows_ * values_;
    const Scratch<float> sums(heads * parts_ * per_task);
    const Scratch<RowState> states(heads * parts_ * rows_);
    const int64_t work = std::max<int64_t>(rows_ * part_keys_ * (features_ + values_), 1);
    parallel_for(0, heads * parts_, std::max<int64_t>(1, kTaskWork / work),
                 [&](int64_t begin, int64_t end) {
                   const Scratch<float> queries(rows_ * features_), scores(rows_ * kKeys);
                   for (int64_t i = begin; i < end; i++)
                     part(i / parts_, i % parts_, queries.data(), scores.data(),
                          sums.data() + i * per_task, states.data() + i * rows_);
                 });
    for (int64_t i = 0; i < heads; i++)
      for (int64_t r = 0; r < rows_; r++)
        combine(i, r, sums.data() + (i * parts_ * rows_ + r) * values_,
                states.data() + i * parts_ * rows_ + r);
  }

 private:
  int64_t head_of_row(int64_t head, int64_t r) const {
    return head % groups_ * (heads_ / groups_) + r / queries_;
  }

  // The part-th range of keys of a head.
  void part(int64_t head, int64_t part, float* queries, float* scores, float* sums,
            RowState* states) const {
    for (int64_t r = 0; r < rows_; r++) {
      const IntSpan step = a_.query.strides;
      const float* from = a_.query.as<float>() + head / groups_ * step[0] +
                          head_of_row(head, r) * step[1] + r % queries_ * step[2];
      for (int64_t d = 0; d < features_; d++)
        queries[r * features_ + d] = a_.scale * from[d * step[3]];
      states[r] = {};
    }
    std::fill_n(sums, rows_ * values_, 0.0f);
    const int64_t end = std::min(keys_, (part + 1) * part_keys_);
    for (int64_t key = part * part_keys_; key < end; key += kKeys)
      block(head, key, std::min(kKeys, end - key), queries, scores, sums, states);
  }

  void block(int64_t head, int64_t key, int64_t n, const float* queries, float* scores, float* sums,
             RowState* states) const {
    const int64_t b = head / groups_, g = head % groups_;
    const IntSpan k = a_.key.strides, v = a_.value.strides;
    const int64_t k_at = b * k[0] + g * k[1] + key * k[2], v_at = b * v[0] + g * v[1] + key * v[2];
    dot_rows(a_.key.dtype,
             {scores, kKeys, a_.key.as<char>() + k_at * item_size(a_.key.dtype), k[2], features_,
              queries, features_, rows_},
             0, n);
    for (int64_t r = 0; r < rows_; r++) {
      mask(scores + r * kKeys, head, r, key, n);
      const float factor = HWY_DYNAMIC_DISPATCH(softmax_weights)(scores + r * kKeys, n, states[r]);
      for (int64_t d = 0; d < values_ && factor != 1; d++) sums[r * values_ + d] *= factor;
    }
    const char* values = a_.value.as<char>() + v_at * item_size(a_.value.dtype);
    for (int64_t r = 0; r < rows_; r++) HWY_DYNAMIC_DISPATCH(add_weighted)
    (sums + r * values_, scores + r * kKeys, {a_.value.dtype, values, values_, v[2], n});
  }

  // Of row r's scores of n keys from `key` on.
  void mask(float* scores, int64_t head, int64_t r, int64_t key, int64_t n) const {
    const int64_t query = r % queries_;
    if (a_.causal)
      for (int64_t i = std::max<int64_t>(query + 1 - key, 0); i < n; i++) scores[i] = -kInfinity;
    if (!a_.mask.present) return;
    const IntSpan step = a_.mask.strides;
    const int64_t at =
        head / groups_ * step[0] + head_of_row(head, r) * step[1] + query * step[2] + key * step[3];
    if (a_.mask.dtype == DType::kBool) {
      for (int64_t i = 0; i < n; i++)
        scores[i] += a_.mask.as<Bool>()[at + i * step[3]] ? 0.0f : -kInfinity;
    } else {
      for (int64_t i = 0; i < n; i++) scores[i] += a_.mask.as<float>()[at + i * step[3]];
    }
  }

  // Row r of a head: the first part's sums and state; the others' lie rows_ rows apart.
  void combine(int64_t head, int64_t r, const float* sums, const RowState* states) const {
    float high = -kInfinity, sum = 0;
    for (int64_t i = 0; i < parts_; i++) high = std::max(high, states[i * rows_].high);
    const float shift = high == -kInfinity ? 0 : high;
    for (int64_t i = 0; i < parts_; i++)
      sum += states[i * rows_].sum * std::exp(states[i * rows_].high - shift);
    const int64_t b = head / groups_, h = head_of_row(head, r), query = r % queries_;
    lse_[(b * heads_ + h) * queries_ + query] = sum == 0 ? kInfinity : high + std::log(sum);
    const IntSpan step = out_.strides;
    float* to = out_.as<float>() + b * step[0] + h * step[1] + query * step[2];
    for (int64_t d = 0; d < values_; d++) to[d * step[3]] = 0;
    for (int64_t i = 0; i < parts_ && sum != 0; i++) {
      const float weight = std::exp(states[i * rows_].high - shift) / sum;
      for (int64_t d = 0; d < values_; d++)
        to[d * step[3]] += weight * sums[i * rows_ * values_ + d];
    }
  }

  Attention a_;
  View out_;
  float* lse_;
  int64_t heads_, groups_, queries_, keys_, features_, values_;
  int64_t rows_;  // of queries that read a head of keys
  int64_t parts_, part_keys_;
};

}  // namespace

void attention_few_queries(const View& out, const View& logsumexp, const Attention& a) {
  FewQueries(out, logsumexp, a).run();
}

}  // namespace taeda::cpu
#endif
