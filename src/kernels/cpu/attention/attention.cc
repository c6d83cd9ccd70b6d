// Attention by blocks of keys and panels of queries: the scores of one panel stay in the cache.
//
// Everything stands transposed, keys (or features) along rows and the queries of a panel along
// columns. That is how B's panels are packed for the next product, so weights are used as they are
// computed, and maxima and sums over keys are taken in all lanes at once.
//
//   S = scale K Q^T, P = exp(S - max), O^T = V^T P / sum P
//
// with online softmax: the running max and sum, and O, are corrected when a later block has a
// larger score (Dao et al. 2022). Backward computes the weights again:
//
//   P = exp(S - logsumexp), gP = V gO^T, gS = P (gP - sum(gO O))
//   gQ^T = scale K^T gS, gK = scale gS Q, gV = P gO, and the mask's gradient is gS^T
#include "kernels/cpu/attention/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "kernels/cpu/gemm/sgemm.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/simd/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/attention.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using V = Vec<float>;
constexpr int64_t kLanes = V::size();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kKeys = 256;  // a block's, at most
// Panels that meet a packed block of keys in forward: what is kept of them stays in the
// second-level cache, and there are enough groups for some threads.
constexpr int64_t kGroupPanels = 16;
constexpr int64_t kGroupFloats = int64_t{1} << 16;
constexpr int64_t kEnoughTasks = 4;
constexpr int64_t kBackwardPanels = 4;  // and in backward, where their weights are kept
constexpr int64_t kRangeKeys = 128;     // at least so many keys make a task of backward

int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }
int64_t rounded_up(int64_t n, int64_t to) { return blocks_of(n, to) * to; }

// Working memory of one task, handed out part by part; each starts a line of the cache.
// Without memory it only counts.
class Arena {
 public:
  explicit Arena(int64_t floats = 0) : memory_(floats) {}
  int64_t used() const { return used_; }
  float* allocate(int64_t floats) {
    float* const chunk = memory_.data() ? memory_.data() + used_ : nullptr;
    used_ += rounded_up(floats, 16);
    return chunk;
  }

 private:
  Scratch<float> memory_;
  int64_t used_ = 0;
};

// A matrix of one head: its tokens along rows.
struct Rows {
  float* data;
  int64_t row, col;
  float* at(int64_t i) const { return data + i * row; }
};
Rows head_of(const View& v, int64_t b, int64_t h) {
  return {v.as<float>() + b * v.strides[0] + h * v.strides[1], v.strides[2], v.strides[3]};
}

struct Sizes {
  int64_t heads, groups, queries, keys, features, values;  // values: features of a value
  int64_t block;                                           // keys
  int64_t panels;                                          // of queries
  int64_t group;                                           // panels
};
Sizes sizes_of(const Attention& a) {
  const SgemmTiles& tiles = sgemm_tiles();
  Sizes s{a.query.sizes[1],
          a.key.sizes[1],
          a.query.sizes[2],
          a.key.sizes[2],
          a.query.sizes[3],
          a.value.sizes[3],
          0,
          0,
          kGroupPanels};
  const int64_t keys = std::max<int64_t>(s.keys, 1);
  s.block = rounded_up(blocks_of(keys, blocks_of(keys, kKeys)), tiles.rows);
  s.panels = blocks_of(s.queries, tiles.columns);
  const int64_t heads = a.query.sizes[0] * s.heads, kept = tiles.columns * (s.features + s.values);
  while (s.group > 2 &&
         (s.group * kept > kGroupFloats || heads * blocks_of(s.panels, s.group) < kEnoughTasks))
    s.group /= 2;
  return s;
}

// e^x for x <= 0 or little more, 0 instead of results below 1e-38; NaN stays.
TD_FN V exp_falling(V x) {
  constexpr float kLeast = -87;
  const auto [bits, n, r] = split_exponent(raw_max(V(kLeast), x));
  const V y = add_exponent(expm1_reduced(r) + 1, bits);
  return select(isnan(x), x, select(x < kLeast, V(0), y));
}

// One panel: its queries [query, query + count) in columns of matrices with so long rows.
struct Panel {
  int64_t query, count, row;
};

// Keys of the block [key, key + n) that the panel's columns [0, columns) see.
int64_t visible(const Panel& p, bool causal, int64_t key, int64_t n, int64_t columns) {
  return causal ? std::clamp<int64_t>(p.query + std::min(columns, p.count) - key, 0, n) : n;
}
int64_t visible(const Panel& p, bool causal, int64_t key, int64_t n) {
  return visible(p, causal, key, n, p.count);
}

// -inf where a key stands behind the query, in the vectors of queries some of which see the key.
void mask_future(float* scores, const Panel& p, int64_t key, int64_t keys) {
  for (int64_t k = std::max<int64_t>(0, p.query + 1 - key); k < keys; k++) {
    const int64_t column = key + k - p.query, vector = column / kLanes * kLanes;
    std::fill_n(scores + k * p.row + vector, column - vector, -kInfinity);
  }
}

// 0 where no query of a vector sees the key.
void clear_future(float* x, const Panel& p, int64_t key, int64_t keys) {
  for (int64_t at = 0; at < p.count; at += kLanes)
    for (int64_t k = visible(p, true, key, keys, at + kLanes); k < keys; k++)
      store(x + k * p.row + at, V(0));
}

// The mask of one head.
struct HeadMask {
  const View& mask;
  int64_t offset;
  HeadMask(const View& m, int64_t b, int64_t h)
      : mask(m), offset(m.present ? b * m.strides[0] + h * m.strides[1] : 0) {}

  // Adds it to the scores. `scratch` has 2 * keys floats for each column of a panel.
  void add(float* scores, float* scratch, const Panel& p, int64_t key, int64_t keys) const {
    if (!mask.present) return;
    const int64_t row = mask.strides[2], col = mask.strides[3];
    const int64_t start = offset + p.query * row + key * col;
    const int64_t width = sgemm_tiles().columns;
    float* const transposed = scratch + keys * width;
    if (mask.dtype == DType::kFloat32) {
      sgemm_tiles().pack_columns(transposed, keys, mask.as<float>() + start, p.count, row, col,
                                 keys);
    } else {
      const Bool* from = mask.as<Bool>() + start;
      for (int64_t q = 0; q < p.count; q++)
        for (int64_t k = 0; k < keys; k++)
          scratch[q * keys + k] = from[q * row + k * col] ? 0.0f : -kInfinity;
      sgemm_tiles().pack_columns(transposed, keys, scratch, p.count, keys, 1, keys);
    }
    for (int64_t k = 0; k < keys; k++, scores += p.row)
      for (int64_t at = 0; at < p.count; at += kLanes)
        store(scores + at, load(scores + at) + load(transposed + k * width + at));
  }
};

// What is known of a panel's rows after some blocks of keys.
struct RowState {
  float *high, *sum, *factor;  // factor: what earlier results are to be multiplied by
};

// Scores become weights; columns a..b of lanes at once.
template <int kVectors>
TD_FN void softmax_weights(float* scores, const RowState& state, int64_t at, int64_t width,
                           int64_t keys) {
  V old[kVectors], high[kVectors], sum[kVectors];
  for (int v = 0; v < kVectors; v++) old[v] = high[v] = load(state.high + at + v * kLanes);
  for (int64_t k = 0; k < keys; k++)
    for (int v = 0; v < kVectors; v++)
      high[v] = raw_max(load(scores + k * width + at + v * kLanes), high[v]);
  for (int v = 0; v < kVectors; v++) {
    store(state.high + at + v * kLanes, high[v]);
    high[v] = select(high[v] == -kInfinity, V(0), high[v]);  // no key yet: all weights are 0
    const V factor = exp_falling(old[v] - high[v]);
    store(state.factor + at + v * kLanes, factor);
    sum[v] = load(state.sum + at + v * kLanes) * factor;
  }
  for (int64_t k = 0; k < keys; k++) {
    for (int v = 0; v < kVectors; v++) {
      float* const x = scores + k * width + at + v * kLanes;
      const V e = exp_falling(load(x) - high[v]);
      store(x, e);
      sum[v] = sum[v] + e;
    }
  }
  for (int v = 0; v < kVectors; v++) store(state.sum + at + v * kLanes, sum[v]);
}
void softmax_weights(float* scores, const RowState& state, const Panel& p, bool causal, int64_t key,
                     int64_t keys) {
  int64_t at = 0;
  const int64_t used = rounded_up(p.count, kLanes);
  const bool whole = visible(p, causal, key, keys, kLanes) == keys;
  for (; whole && at + 2 * kLanes <= used; at += 2 * kLanes)
    softmax_weights<2>(scores, state, at, p.row, keys);
  for (; at < used; at += kLanes)
    softmax_weights<1>(scores, state, at, p.row, visible(p, causal, key, keys, at + kLanes));
  if (!whole) clear_future(scores, p, key, keys);
}

// rows of `width` elements times factors by column
void scale_columns(float* x, int64_t rows, const float* factor, const Panel& p) {
  for (int64_t at = 0; at < p.count; at += kLanes) {
    const V f = load(factor + at);
    for (int64_t i = 0; i < rows; i++) store(x + i * p.row + at, load(x + i * p.row + at) * f);
  }
}

// Lines of a head that a product of so many tiles fetches on the way.
Prefetch rows_ahead(const Rows& r, int64_t row, int64_t rows, int64_t features, int64_t tiles) {
  if (rows <= 0 || r.col != 1) return {};
  return {r.at(row), rows, r.row, features, tiles};
}

// The i-th of n tasks of which the last are the longest: one of these and one of the shortest in
// turn, so that equal shares of the tasks take as long.
int64_t long_and_short(int64_t i, int64_t n) { return i % 2 == 0 ? n - 1 - i / 2 : i / 2; }

// What both directions need: the operands, their sizes and the tiles.
class Task {
 protected:
  explicit Task(const Attention& a) : a_(a), s_(sizes_of(a)), t_(sgemm_tiles()) {}
  int64_t mask_scratch() const { return a_.mask.present ? 2 * s_.block * t_.columns : 0; }
  Panel panel(int64_t i) const {
    return {i * t_.columns, std::min(t_.columns, s_.queries - i * t_.columns), t_.columns};
  }
  // Products of the first `seen` keys of a block with the panel's queries that see them: rows are
  // packed along `features`, columns too.
  void multiply_seen(float* c, const float* rows, const float* columns, int64_t features,
                     float alpha, const Panel& p, int64_t key, int64_t seen,
                     std::span<Prefetch> ahead) const {
    int64_t done = 0;
    for (int64_t at = 0; at < p.count; at += kLanes) {
      const int64_t end = visible(p, a_.causal, key, seen, at + kLanes);
      if (end > done)
        t_.multiply({end - done, p.count - at, features, c + done * p.row + at, p.row, 1, rows,
                     features, columns + at, features, alpha, 0, done, ahead});
      done = std::max(done, end);
    }
  }
  // Scores of the first `seen` keys of a block.
  void score(float* scores, const float* keys, const float* queries, const Panel& p, int64_t key,
             int64_t seen, const HeadMask& mask, float* scratch, std::span<Prefetch> ahead) const {
    multiply_seen(scores, keys, queries, s_.features, a_.scale, p, key, seen, ahead);
    mask.add(scores, scratch, p, key, seen);
    if (a_.causal) mask_future(scores, p, key, seen);
  }
  // A panel of results, (features, width), as rows of the panel's queries.
  void store_transposed(const Rows& out, const Panel& p, const float* from,
                        int64_t features) const {
    if (out.col == 1) return t_.transpose(out.at(p.query), out.row, from, p.row, features, p.count);
    for (int64_t j = 0; j < p.count; j++)
      for (int64_t d = 0; d < features; d++) out.at(p.query + j)[d * out.col] = from[d * p.row + j];
  }

  Attention a_;
  Sizes s_;
  const SgemmTiles& t_;
};

class Forward : Task {
 public:
  Forward(const View& out, const View& logsumexp, const Attention& a)
      : Task(a), out_(out), lse_(logsumexp.as<float>()) {}

  void run() const {
    const int64_t groups = blocks_of(s_.panels, s_.group),
                  tasks = a_.query.sizes[0] * s_.heads * groups;
    parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
      Arena count;
      allocate(count);
      Arena arena(count.used());
      const Memory m = allocate(arena);
      for (int64_t i = begin; i < end; i++)
        group(m, head_at(i / groups), long_and_short(i % groups, groups) * s_.group,
              head_at(std::min(i + 1, tasks - 1) / groups));
    });
  }

 private:
  // Of a group of panels: queries, results, maxima and sums; of a block: rows of K and of V^T; of
  // both: scores.
  struct Memory {
    float *queries, *results, *rows, *keys, *values, *scores, *mask;
  };
  Memory allocate(Arena& arena) const {
    const int64_t panels = std::min(s_.group, s_.panels) * t_.columns;
    return {arena.allocate(panels * s_.features),
            arena.allocate(panels * s_.values),
            arena.allocate(panels * 3),
            arena.allocate(s_.block * s_.features),
            arena.allocate(s_.block * rounded_up(s_.values, t_.rows)),
            arena.allocate(s_.block * t_.columns),
            arena.allocate(mask_scratch())};
  }
  float* queries(const Memory& m, int64_t i) const {
    return m.queries + i * t_.columns * s_.features;
  }
  float* results(const Memory& m, int64_t i) const {
    return m.results + i * t_.columns * s_.values;
  }
  RowState state(const Memory& m, int64_t i) const {
    float* const rows = m.rows + i * t_.columns * 3;
    return {rows, rows + t_.columns, rows + 2 * t_.columns};
  }

  struct Head {
    int64_t b, h;
    Rows q, k, v, out;
    HeadMask mask;
  };
  Head head_at(int64_t i) const {
    const int64_t b = i / s_.heads, h = i % s_.heads, g = h / (s_.heads / s_.groups);
    return {b,
            h,
            head_of(a_.query, b, h),
            head_of(a_.key, b, g),
            head_of(a_.value, b, g),
            head_of(out_, b, h),
            HeadMask(a_.mask, b, h)};
  }
  // Panels from `first` on. What the group after it begins with is prefetched.
  void group(const Memory& m, const Head& head, int64_t first, const Head& after) const {
    const int64_t count = std::min(s_.group, s_.panels - first);
    const Panel last = panel(first + count - 1);
    std::array<Prefetch, 4> ahead;
    for (int64_t key = 0; key < std::max<int64_t>(s_.keys, 1); key += s_.block) {
      const int64_t n = visible(last, a_.causal, key, std::min(s_.block, s_.keys - key));
      if (n == 0 && key > 0) break;
      t_.pack_rows(m.keys, s_.features, head.k.at(key), n, head.k.row, head.k.col, s_.features);
      t_.pack_rows(m.values, n, head.v.at(key), s_.values, head.v.col, head.v.row, n);
      const int64_t end = visible(last, a_.causal, 0, s_.keys), next = key + n;
      const Head& then = next < end ? head : after;
      const int64_t from = next < end ? next : 0, to = std::min(end, from + s_.block);
      const int64_t tiles = tiles_of(n) * count / (a_.causal ? 2 : 1);
      ahead[0] = rows_ahead(then.k, from, to - from, s_.features, tiles);
      ahead[1] = rows_ahead(then.v, from, to - from, s_.values, tiles);
      for (int64_t i = 0; i < count; i++) block(m, i, panel(first + i), key, n, head, ahead);
    }
  }
  int64_t tiles_of(int64_t keys) const {
    return blocks_of(keys, t_.rows) + blocks_of(s_.values, t_.rows);
  }

  // The block [key, key + n) meets a panel: its first one packs the queries, its last one ends it.
  void block(const Memory& m, int64_t i, const Panel& p, int64_t key, int64_t n, const Head& head,
             std::span<Prefetch, 4> ahead) const {
    const int64_t seen = visible(p, a_.causal, key, n);
    if (seen == 0 && key > 0) return;
    const RowState rows = state(m, i);
    float* const sums = results(m, i);
    const int64_t left = visible(p, a_.causal, key + seen, s_.keys - key - seen);
    if (key == 0) {
      t_.pack_columns(queries(m, i), s_.features, head.q.at(p.query), p.count, head.q.row,
                      head.q.col, s_.features);
      std::fill_n(rows.high, p.row, -kInfinity);
      std::fill_n(rows.sum, p.row, 0.0f);
      const int64_t next = p.query + p.count, count = std::min(t_.columns, s_.queries - next);
      ahead[2] = rows_ahead(head.q, next, count, s_.features, tiles_of(seen));
    }
    if (left == 0) ahead[3] = rows_ahead(head.out, p.query, p.count, s_.values, tiles_of(seen));
    score(m.scores, m.keys, queries(m, i), p, key, seen, head.mask, m.mask, ahead);
    softmax_weights(m.scores, rows, p, a_.causal, key, seen);
    if (key > 0) scale_columns(sums, s_.values, rows.factor, p);
    t_.multiply({s_.values, p.count, seen, sums, p.row, 1, m.values, n, m.scores, seen, 1,
                 key > 0 ? 1.0f : 0.0f, 0, ahead});
    if (left == 0) finalize(m, i, p, head);
  }

  void finalize(const Memory& m, int64_t i, const Panel& p, const Head& head) const {
    const RowState rows = state(m, i);
    float* const sums = results(m, i);
    float* const lse = lse_ + (head.b * s_.heads + head.h) * s_.queries + p.query;
    if (s_.keys == 0) std::fill_n(sums, s_.values * p.row, 0.0f);
    for (int64_t j = 0; j < p.count; j++) {
      const float sum = rows.sum[j];
      lse[j] = sum == 0 ? kInfinity : rows.high[j] + std::log(sum);
      rows.factor[j] = sum == 0 ? 0.0f : 1 / sum;
    }
    scale_columns(sums, s_.values, rows.factor, p);
    store_transposed(head.out, p, sums, s_.values);
  }

  View out_;
  float* lse_;
};

// x becomes exp(x - logsumexp), the weights; gradients of weights become those of scores.
void softmax_gradient(float* x, float* gradient, const float* logsumexp, const float* mean,
                      const Panel& p, bool causal, int64_t key, int64_t keys) {
  for (int64_t at = 0; at < p.count; at += kLanes) {
    const V shift = load(logsumexp + at), center = load(mean + at);
    const int64_t end = visible(p, causal, key, keys, at + kLanes) * p.row;
    for (int64_t i = at; i < end; i += p.row) {
      const V weight = exp_falling(load(x + i) - shift);
      store(x + i, weight);
      store(gradient + i, weight * (load(gradient + i) - center));
    }
  }
  if (!causal) return;
  clear_future(x, p, key, keys);
  clear_future(gradient, p, key, keys);
}

// A task is a range of keys of a head, with all heads of queries that read it: no two tasks add to
// the same gradient of a key. Where heads are few, each has several ranges, whose gradients of
// queries are added in order.
class Backward : Task {
 public:
  Backward(const View& gq, const View& gk, const View& gv, const View& gm, const View& gy,
           const View& out, const View& logsumexp, const Attention& a)
      : Task(a),
        gq_(gq),
        gk_(gk),
        gv_(gv),
        gm_(gm),
        gy_(gy),
        out_(out),
        lse_(logsumexp.as<float>()) {
    const int64_t heads = std::max<int64_t>(1, a.query.sizes[0] * s_.groups);
    const int64_t ranges =
        std::clamp<int64_t>(s_.keys / kRangeKeys, 1, blocks_of(kEnoughTasks, heads));
    s_.block =
        std::min(s_.block, rounded_up(std::max<int64_t>(1, blocks_of(s_.keys, ranges)), t_.rows));
    blocks_ = blocks_of(s_.keys, s_.block);
    ranges_ = std::clamp<int64_t>(blocks_, 1, ranges);
  }

  void run() const {
    const int64_t heads = a_.query.sizes[0] * s_.groups;
    const Scratch<float> partial(ranges_ > 1 ? heads * ranges_ * gq_size() : 0);
    parallel_for(0, heads * ranges_, 1, [&](int64_t begin, int64_t end) {
      Arena count;
      allocate(count);
      Arena arena(count.used());
      Memory m = allocate(arena);
      for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / ranges_, range = long_and_short(i % ranges_, ranges_);
        if (ranges_ > 1) m.gq = partial.data() + (head * ranges_ + range) * gq_size();
        keys_of(m, head / s_.groups, head % s_.groups, range);
        if (ranges_ == 1)
          for (int64_t j = 0; j < panels(); j++) store_gq(m.gq, head, j);
      }
    });
    if (ranges_ > 1) add_ranges(partial.data());
  }

 private:
  struct Memory {
    // Of all queries of all heads: columns of gradients, logsumexp, and sum(gO O).
    float *gq, *logsumexp, *means;
    // Of a block of keys: rows of K, K^T and V, and the gradients.
    float *keys, *transposed_keys, *values, *gk, *gv;
    // Of some panels: columns of Q^T and gO^T, and P and gS, keys along rows.
    float *queries, *gy, *weights, *gradients;
    // Of a panel: columns of Q and gO.
    float *panel_queries, *panel_gy, *mask;
  };
  Memory allocate(Arena& arena) const {
    const int64_t d = s_.features, e = s_.values, w = t_.columns, some = kBackwardPanels * w;
    const int64_t all = panels() * w;
    return {arena.allocate(ranges_ > 1 ? 0 : gq_size()),
            arena.allocate(all),
            arena.allocate(all),
            arena.allocate(s_.block * d),
            arena.allocate(s_.block * rounded_up(d, t_.rows)),
            arena.allocate(s_.block * e),
            arena.allocate(s_.block * d),
            arena.allocate(s_.block * e),
            arena.allocate(some * rounded_up(d, w)),
            arena.allocate(some * rounded_up(e, w)),
            arena.allocate(weights_row() * s_.block),
            arena.allocate(weights_row() * s_.block),
            arena.allocate(w * d),
            arena.allocate(w * e),
            arena.allocate(mask_scratch())};
  }
  int64_t repeats() const { return s_.heads / s_.groups; }
  int64_t panels() const { return s_.panels * repeats(); }  // of all heads of queries of a task
  int64_t padded_queries() const { return s_.panels * t_.columns; }
  int64_t panel_size() const { return t_.columns * s_.features; }
  int64_t gq_size() const { return panels() * panel_size(); }
  // Rows of weights of some panels begin at lines of different sets of the cache.
  int64_t weights_row() const { return kBackwardPanels * t_.columns + kLanes; }

  // What a range of keys of head g gives to all gradients. Ranges take blocks from both ends in
  // turn, so that with a causal mask they have as much to do.
  void keys_of(const Memory& m, int64_t b, int64_t g, int64_t range) const {
    const Rows k = head_of(a_.key, b, g), v = head_of(a_.value, b, g);
    const Rows gk = head_of(gk_, b, g), gv = head_of(gv_, b, g);
    std::fill_n(m.gq, gq_size(), 0.0f);
    for (int64_t r = 0; r < repeats(); r++) start(m, b, g * repeats() + r, r);
    for (int64_t i = 0; i < blocks_; i++) {
      const int64_t turn = i % (2 * ranges_);
      if (std::min(turn, 2 * ranges_ - 1 - turn) != range) continue;
      const int64_t key = i * s_.block, n = std::min(s_.block, s_.keys - key);
      t_.pack_rows(m.keys, s_.features, k.at(key), n, k.row, k.col, s_.features);
      t_.pack_rows(m.transposed_keys, n, k.at(key), s_.features, k.col, k.row, n);
      t_.pack_rows(m.values, s_.values, v.at(key), n, v.row, v.col, s_.values);
      std::fill_n(m.gk, n * s_.features, 0.0f);
      std::fill_n(m.gv, n * s_.values, 0.0f);
      for (int64_t r = 0; r < repeats(); r++)
        for (int64_t j = 0; j < s_.panels; j += kBackwardPanels)
          some_panels(m, b, g * repeats() + r, r, j, key, n);
      store_rows(gk, key, n, m.gk, s_.features);
      store_rows(gv, key, n, m.gv, s_.values);
    }
  }

  // Panel i of those of all heads of queries of a task.
  void store_gq(const float* gq, int64_t head, int64_t i) const {
    const int64_t h = head % s_.groups * repeats() + i / s_.panels;
    store_transposed(head_of(gq_, head / s_.groups, h), panel(i % s_.panels), gq + i * panel_size(),
                     s_.features);
  }
  void add_ranges(float* partial) const {
    const int64_t heads = a_.query.sizes[0] * s_.groups;
    parallel_for(0, heads * panels(), kBackwardPanels, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / panels();
        float* const gq = partial + head * ranges_ * gq_size();
        float* const sum = gq + i % panels() * panel_size();
        for (int64_t range = 1; range < ranges_; range++)
          for (int64_t j = 0; j < panel_size(); j += kLanes)
            store(sum + j, load(sum + j) + load(sum + range * gq_size() + j));
        store_gq(gq, head, i % panels());
      }
    });
  }

  void start(const Memory& m, int64_t b, int64_t h, int64_t r) const {
    const Rows gy = head_of(gy_, b, h), out = head_of(out_, b, h);
    float* const lse = m.logsumexp + r * padded_queries();
    float* const means = m.means + r * padded_queries();
    std::copy_n(lse_ + (b * s_.heads + h) * s_.queries, s_.queries, lse);
    std::fill(lse + s_.queries, lse + padded_queries(), kInfinity);
    std::fill(means + s_.queries, means + padded_queries(), 0.0f);
    for (int64_t q = 0; q < s_.queries; q++) {
      if (gy.col == 1 && out.col == 1) {
        means[q] = row_table<float>().dot(gy.at(q), out.at(q), s_.values);
        continue;
      }
      float sum = 0;
      for (int64_t d = 0; d < s_.values; d++) sum += gy.at(q)[d * gy.col] * out.at(q)[d * out.col];
      means[q] = sum;
    }
  }

  // What a block of n keys and the panels from `first` on give each other.
  void some_panels(const Memory& m, int64_t b, int64_t h, int64_t r, int64_t first, int64_t key,
                   int64_t n) const {
    const int64_t count = std::min(kBackwardPanels, s_.panels - first), start = panel(first).query;
    const int64_t queries = std::min(count * t_.columns, s_.queries - start);
    if (visible(panel(first + count - 1), a_.causal, key, n) == 0) return;
    const Rows q = head_of(a_.query, b, h), gy = head_of(gy_, b, h);
    const HeadMask mask(a_.mask, b, h);
    t_.pack_columns(m.queries, queries, q.at(start), s_.features, q.col, q.row, queries);
    t_.pack_columns(m.gy, queries, gy.at(start), s_.values, gy.col, gy.row, queries);
    const int64_t next = start + queries, tiles = 2 * count * blocks_of(n, t_.rows),
                  rows = std::min(kBackwardPanels * t_.columns, s_.queries - next);
    std::array<Prefetch, 2> ahead = {rows_ahead(q, next, rows, s_.features, tiles),
                                     rows_ahead(gy, next, rows, s_.values, tiles)};
    for (int64_t i = 0; i < count; i++) {
      Panel p = panel(first + i);
      p.row = weights_row();
      const int64_t seen = visible(p, a_.causal, key, n);
      if (seen == 0) continue;
      t_.pack_columns(m.panel_queries, s_.features, q.at(p.query), p.count, q.row, q.col,
                      s_.features);
      t_.pack_columns(m.panel_gy, s_.values, gy.at(p.query), p.count, gy.row, gy.col, s_.values);
      float* const weights = m.weights + i * t_.columns;
      float* const gradients = m.gradients + i * t_.columns;
      score(weights, m.keys, m.panel_queries, p, key, seen, mask, m.mask, ahead);
      multiply_seen(gradients, m.values, m.panel_gy, s_.values, 1, p, key, seen, ahead);
      const int64_t row = r * padded_queries() + p.query;
      softmax_gradient(weights, gradients, m.logsumexp + row, m.means + row, p, a_.causal, key,
                       seen);
      if (gm_.present) {
        const Rows gm = head_of(gm_, b, h);
        store_transposed({gm.data + key * gm.col, gm.row, gm.col}, p, gradients, seen);
      }
      for (int64_t k = seen; k % t_.rows != 0; k++) {  // the strip's other keys
        std::fill_n(weights + k * p.row, t_.columns, 0.0f);
        std::fill_n(gradients + k * p.row, t_.columns, 0.0f);
      }
      t_.multiply({.m = s_.features,
                   .n = p.count,
                   .k = seen,
                   .c = m.gq + (r * s_.panels + first + i) * panel_size(),
                   .c_row = t_.columns,
                   .c_col = 1,
                   .a = m.transposed_keys,
                   .a_length = n,
                   .b = gradients,
                   .b_length = 0,
                   .alpha = a_.scale,
                   .beta = 1,
                   .b_row = p.row});
    }
    add_to_keys(m, start, queries, key, n);
  }

  // Strip by strip where a part of the queries does not see it.
  void add_to_keys(const Memory& m, int64_t start, int64_t queries, int64_t key, int64_t n) const {
    const bool whole = !a_.causal || start >= key + n - 1;
    const int64_t step = whole ? n : t_.rows;
    for (int64_t row = 0; row < n; row += step) {
      const int64_t skip = whole ? 0 : std::max<int64_t>(0, key + row - start);
      if (skip >= queries) return;
      const auto add = [&](float* sums, int64_t features, const float* weights,
                           const float* columns, float scale) {
        t_.multiply({.m = std::min(step, n - row),
                     .n = features,
                     .k = queries - skip,
                     .c = sums + row * features,
                     .c_row = features,
                     .c_col = 1,
                     .a = weights + row * weights_row() + skip,
                     .a_length = 0,
                     .b = columns + skip * t_.columns,
                     .b_length = queries,
                     .alpha = scale,
                     .beta = 1,
                     .a_row = weights_row()});
      };
      add(m.gv, s_.values, m.weights, m.gy, 1);
      add(m.gk, s_.features, m.gradients, m.queries, a_.scale);
    }
  }
  static void store_rows(const Rows& to, int64_t at, int64_t n, const float* from,
                         int64_t features) {
    for (int64_t i = 0; i < n; i++) {
      if (to.col == 1)
        std::copy_n(from + i * features, features, to.at(at + i));
      else
        for (int64_t d = 0; d < features; d++) to.at(at + i)[d * to.col] = from[i * features + d];
    }
  }

  View gq_, gk_, gv_, gm_, gy_, out_;
  const float* lse_;
  int64_t blocks_, ranges_;
};

}  // namespace

void attention_forward(const View& out, const View& logsumexp, const Attention& a) {
  Forward(out, logsumexp, a).run();
}
void attention_gradient(const View& gq, const View& gk, const View& gv, const View& gm,
                        const View& gy, const View& out, const View& logsumexp,
                        const Attention& a) {
  Backward(gq, gk, gv, gm, gy, out, logsumexp, a).run();
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(attention_forward);
HWY_EXPORT(attention_gradient);

void attention(const View& out, const View& logsumexp, const Attention& a) {
  HWY_DYNAMIC_DISPATCH(attention_forward)(out, logsumexp, a);
}
void attention_backward(const View& gq, const View& gk, const View& gv, const View& gm,
                        const View& gy, const View& out, const View& logsumexp,
                        const Attention& a) {
  HWY_DYNAMIC_DISPATCH(attention_gradient)(gq, gk, gv, gm, gy, out, logsumexp, a);
}

}  // namespace taeda::cpu
#endif
