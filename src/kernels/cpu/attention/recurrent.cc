// A layer of an RNN, GRU or LSTM over a padded sequence, forward and backward through time.
//
// A step is a product with the recurrent weight and the cell, unit by unit; each task does both for
// some units, so sums meet the cell in the cache. The weight is packed once, the state of a step by
// the tasks that compute it, ready for the next step's product (sgemm.h).
//
//   LSTM:  c' = f c + i g,  h' = o tanh(c'),  i, f, o = sigmoid(x + W h), g = tanh(x + W h)
//   GRU:   h' = n + z (h - n),  r, z = sigmoid(x + W h), n = tanh(x + r (W h))
//   RNN:   h' = tanh(x + W h), or relu
//
// W h stands for W h + b where a bias is given. Memory is (steps, batch, gates * hidden), gates in
// PyTorch's order; states and cells have one step more, the first before (after, if reversed) all
// others.
#include <algorithm>
#include <type_traits>

#include "base/parallel.h"
#include "kernels/cpu/gemm/sgemm.h"
#include "kernels/cpu/simd/prefetch.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/view.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/recurrent.cc"
#include "kernels/cpu/simd/simd.h"

#ifndef TAEDA_RECURRENT_TENSORS
#define TAEDA_RECURRENT_TENSORS
namespace taeda::cpu {
namespace {

// Of both directions; null where the mode has none.
struct Recurrence {
  int64_t steps, batch, hidden;
  const float *x, *weight, *bias;  // x: forward only
  float *states, *cells, *saved;
  bool reverse;
  // backward only
  const float* gy;
  float *gx, *gsums, *gh, *gc;  // gh and gc: from those of the last state to those of the first
};

}  // namespace
}  // namespace taeda::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using V = Vec<float>;
constexpr int64_t kLanes = V::size();
constexpr int64_t kTaskWork = int64_t{1} << 17;  // multiplications

TD_FN V logistic(V x) { return V(1) / (V(1) + exp(-x)); }

// What a cell reads and writes of one vector of units: x and W h by gate, what backward needs, the
// states before and after.
template <int kGates, int kSaved>
struct Units {
  V x[kGates], sum[kGates], saved[kSaved];
  V h_before, c_before, h, c;
  V gh, gc;  // gradients of h and c; of c_before after backward
  V direct;  // what reaches h_before without passing W
};

struct Lstm {
  static constexpr int kGates = 4, kSaved = 4;
  static constexpr bool kCells = true, kDirect = false, kSums = false;
  using U = Units<kGates, kSaved>;
  static TD_FN void forward(U& u) {
    const V i = logistic(u.x[0] + u.sum[0]), f = logistic(u.x[1] + u.sum[1]),
            g = tanh(u.x[2] + u.sum[2]), o = logistic(u.x[3] + u.sum[3]);
    u.c = fma(f, u.c_before, i * g);
    u.h = o * tanh(u.c);
    u.saved[0] = i, u.saved[1] = f, u.saved[2] = g, u.saved[3] = o;
  }
  static TD_FN void backward(U& u) {
    const V i = u.saved[0], f = u.saved[1], g = u.saved[2], o = u.saved[3], t = tanh(u.c);
    const V gc = fma(u.gh * o, V(1) - t * t, u.gc);
    u.x[0] = gc * g * (i * (V(1) - i));
    u.x[1] = gc * u.c_before * (f * (V(1) - f));
    u.x[2] = gc * i * (V(1) - g * g);
    u.x[3] = u.gh * t * (o * (V(1) - o));
    u.gc = gc * f;
  }
};

struct Gru {
  static constexpr int kGates = 3, kSaved = 4;
  static constexpr bool kCells = false, kDirect = true, kSums = true;
  using U = Units<kGates, kSaved>;
  static TD_FN void forward(U& u) {
    const V r = logistic(u.x[0] + u.sum[0]), z = logistic(u.x[1] + u.sum[1]),
            n = tanh(fma(r, u.sum[2], u.x[2]));
    u.h = fma(z, u.h_before - n, n);
    u.saved[0] = r, u.saved[1] = z, u.saved[2] = n, u.saved[3] = u.sum[2];
  }
  static TD_FN void backward(U& u) {
    const V r = u.saved[0], z = u.saved[1], n = u.saved[2], sum = u.saved[3];
    const V gn = u.gh * (V(1) - z) * (V(1) - n * n);
    u.x[0] = u.sum[0] = gn * sum * (r * (V(1) - r));
    u.x[1] = u.sum[1] = u.gh * (u.h_before - n) * (z * (V(1) - z));
    u.x[2] = gn;
    u.sum[2] = gn * r;
    u.direct = u.gh * z;
  }
};

template <bool kRelu>
struct Rnn {
  static constexpr int kGates = 1, kSaved = 0;
  static constexpr bool kCells = false, kDirect = false, kSums = false;
  using U = Units<kGates, 1>;
  static TD_FN void forward(U& u) {
    const V x = u.x[0] + u.sum[0];
    u.h = kRelu ? select(x <= 0, V(0), x) : tanh(x);
  }
  static TD_FN void backward(U& u) {
    u.x[0] = kRelu ? select(u.h <= 0, V(0), u.gh) : u.gh * (V(1) - u.h * u.h);
  }
};

TD_FN V load_some(const float* p, int64_t n) { return n == kLanes ? load(p) : load_n(p, n); }
TD_FN void store_some(float* p, V x, int64_t n) {
  if (n == kLanes)
    store(p, x);
  else
    store_n(p, x, n);
}

template <class Cell>
class Layer {
 public:
  explicit Layer(const Recurrence& r)
      : r_(r), t_(sgemm_tiles()), blocks_((r.hidden + t_.columns - 1) / t_.columns) {}

  void forward() const {
    const int64_t h = r_.hidden, panel = h * t_.columns, gate = blocks_ * panel;
    const Scratch<float> weight(Cell::kGates * gate), a(packed(h)), b(packed(h));
    parallel_for(0, Cell::kGates, grain(h * h), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; g++)
        t_.pack_columns(weight.data() + g * gate, h, r_.weight + g * h * h, h, h, 1, h);
    });
    float *now = a.data(), *next = b.data();
    t_.pack_rows(now, h, r_.states + before(0) * r_.batch * h, r_.batch, h, 1, h);
    for (int64_t step = 0; step < r_.steps; step++, std::swap(now, next)) {
      over_blocks(Cell::kGates * h, [&](float* sums, int64_t unit, int64_t units) {
        prefetch(r_.x, Cell::kGates, step, unit, units);
        for (int64_t g = 0; g < Cell::kGates; g++)
          t_.multiply({r_.batch, units, h, sums + g * r_.batch * t_.columns, t_.columns, 1, now, h,
                       weight.data() + g * gate + unit * h, h});
        for (int64_t i = 0; i < r_.batch; i++) forward_row(step, sums, i, unit, units);
        t_.pack_rows(next + unit * t_.rows, h, r_.states + after(step) * r_.batch * h + unit,
                     r_.batch, h, 1, units);
      });
    }
  }

  void backward() const {
    const int64_t h = r_.hidden, all = Cell::kGates * h;
    const Scratch<float> weight(blocks_ * t_.columns * all), a(packed(all)), b(packed(all));
    const Scratch<float> direct(Cell::kDirect ? r_.batch * h : 0);
    parallel_for(0, blocks_, grain(t_.columns * all), [&](int64_t begin, int64_t end) {
      const int64_t unit = begin * t_.columns;
      t_.pack_columns(weight.data() + unit * all, all, r_.weight + unit,
                      std::min(h, end * t_.columns) - unit, 1, h, all);
    });
    float *now = a.data(), *next = b.data();
    for (int64_t step = r_.steps - 1; step >= -1; step--, std::swap(now, next)) {
      over_blocks(all, [&](float*, int64_t unit, int64_t units) {
        if (step >= 0) prefetch(r_.gy, 1, step, unit, units);
        if (step >= 0) prefetch(r_.saved, Cell::kSaved, step, unit, units);
        if (step < r_.steps - 1)
          t_.multiply({r_.batch, units, all, r_.gh + unit, h, 1, now, all,
                       weight.data() + unit * all, all});
        for (int64_t i = 0; i < r_.batch; i++) backward_row(step, direct.data(), i, unit, units);
        if (step < 0) return;
        const float* from =
            (Cell::kSums ? r_.gsums : r_.gx) + index_of(step) * r_.batch * all + unit;
        for (int64_t g = 0; g < Cell::kGates; g++)
          t_.pack_rows(next + (g * h + unit) * t_.rows, all, from + g * h, r_.batch, all, 1, units);
      });
    }
  }

 private:
  using U = typename Cell::U;
  // Where the step stands in x, and the states around it.
  int64_t index_of(int64_t step) const { return r_.reverse ? r_.steps - 1 - step : step; }
  int64_t before(int64_t step) const { return r_.reverse ? r_.steps - step : step; }
  int64_t after(int64_t step) const { return r_.reverse ? r_.steps - 1 - step : step + 1; }
  // A's strips with k elements a row.
  int64_t packed(int64_t k) const { return (r_.batch + t_.rows - 1) / t_.rows * t_.rows * k; }
  static int64_t grain(int64_t work) {
    return std::max<int64_t>(1, kTaskWork / 4 / std::max<int64_t>(1, work));
  }

  // f(scratch, first unit, units) for blocks of units; scratch is for a block's sums.
  template <class F>
  void over_blocks(int64_t k, const F& f) const {
    const int64_t work = r_.batch * t_.columns * k;
    parallel_for(0, blocks_, std::max<int64_t>(1, kTaskWork / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   const Scratch<float> scratch(Cell::kGates * r_.batch * t_.columns);
                   for (int64_t i = begin; i < end; i++)
                     f(scratch.data(), i * t_.columns,
                       std::min(t_.columns, r_.hidden - i * t_.columns));
                 });
  }

  // What the cell will read arrives while the products are computed.
  [[gnu::always_inline]] void prefetch(const float* from, int64_t parts, int64_t step, int64_t unit,
                                       int64_t units) const {
    const float* rows = from + index_of(step) * r_.batch * parts * r_.hidden + unit;
    for (int64_t i = 0; i < r_.batch * parts; i++, rows += r_.hidden)
      prefetch_lines(rows, units * static_cast<int64_t>(sizeof(float)));
  }

  void forward_row(int64_t step, const float* sums, int64_t i, int64_t unit, int64_t units) const {
    const int64_t h = r_.hidden, row = index_of(step) * r_.batch + i;
    const int64_t old = (before(step) * r_.batch + i) * h, to = (after(step) * r_.batch + i) * h;
    for (int64_t at = 0; at < units; at += kLanes) {
      const int64_t n = std::min(kLanes, units - at), j = unit + at;
      U u;
      for (int64_t g = 0; g < Cell::kGates; g++) {
        u.x[g] = load_some(r_.x + (row * Cell::kGates + g) * h + j, n);
        u.sum[g] = load_some(sums + (g * r_.batch + i) * t_.columns + at, n);
        if (r_.bias) u.sum[g] = u.sum[g] + load_some(r_.bias + g * h + j, n);
      }
      u.h_before = load_some(r_.states + old + j, n);
      if (Cell::kCells) u.c_before = load_some(r_.cells + old + j, n);
      Cell::forward(u);
      for (int64_t s = 0; s < Cell::kSaved; s++)
        store_some(r_.saved + (row * Cell::kSaved + s) * h + j, u.saved[s], n);
      store_some(r_.states + to + j, u.h, n);
      if (Cell::kCells) store_some(r_.cells + to + j, u.c, n);
    }
  }

  // The gradient of h is what came through W, or, in the last step, that of the last state.
  void backward_row(int64_t step, float* direct, int64_t i, int64_t unit, int64_t units) const {
    const int64_t h = r_.hidden, row = index_of(step) * r_.batch + i;
    const int64_t old = (before(step) * r_.batch + i) * h, to = (after(step) * r_.batch + i) * h;
    for (int64_t at = 0; at < units; at += kLanes) {
      const int64_t n = std::min(kLanes, units - at), j = unit + at;
      U u;
      u.gh = load_some(r_.gh + i * h + j, n);
      if (Cell::kDirect && step < r_.steps - 1) u.gh = u.gh + load_some(direct + i * h + j, n);
      if (step < 0) {
        store_some(r_.gh + i * h + j, u.gh, n);
        continue;
      }
      u.gh = u.gh + load_some(r_.gy + row * h + j, n);
      for (int64_t s = 0; s < Cell::kSaved; s++)
        u.saved[s] = load_some(r_.saved + (row * Cell::kSaved + s) * h + j, n);
      u.h_before = load_some(r_.states + old + j, n);
      u.h = load_some(r_.states + to + j, n);
      if (Cell::kCells) {
        u.c_before = load_some(r_.cells + old + j, n);
        u.c = load_some(r_.cells + to + j, n);
        u.gc = load_some(r_.gc + i * h + j, n);
      }
      Cell::backward(u);
      for (int64_t g = 0; g < Cell::kGates; g++) {
        store_some(r_.gx + (row * Cell::kGates + g) * h + j, u.x[g], n);
        if (Cell::kSums) store_some(r_.gsums + (row * Cell::kGates + g) * h + j, u.sum[g], n);
      }
      if (Cell::kCells) store_some(r_.gc + i * h + j, u.gc, n);
      if (Cell::kDirect) store_some(direct + i * h + j, u.direct, n);
    }
  }

  Recurrence r_;
  const SgemmTiles& t_;
  int64_t blocks_;
};

template <class F>
void with_cell(std::string_view mode, const F& f) {
  if (mode == "LSTM") return f(Lstm());
  if (mode == "GRU") return f(Gru());
  if (mode == "RNN_TANH") return f(Rnn<false>());
  f(Rnn<true>());
}

}  // namespace

void run_recurrence(std::string_view mode, const Recurrence& r, bool forward) {
  with_cell(mode, [&](auto cell) {
    const Layer<decltype(cell)> layer(r);
    forward ? layer.forward() : layer.backward();
  });
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
namespace {

HWY_EXPORT(run_recurrence);

// The copy of `first` that the recurrence starts from.
void start(const View& states, const View& first, bool reverse) {
  if (!first.present || first.numel == 0) return;
  const int64_t at = reverse ? (states.sizes[0] - 1) * first.numel : 0;
  std::copy_n(first.as<float>(), first.numel, states.as<float>() + at);
}

}  // namespace

void rnn_layer(const View& states, const View& cells, const View& saved, const View& x,
               const View& h0, const View& c0, const View& w_hh, const View& b_hh,
               std::string_view mode, bool reverse) {
  start(states, h0, reverse);
  start(cells, c0, reverse);
  if (h0.numel == 0) return;
  HWY_DYNAMIC_DISPATCH(run_recurrence)
  (mode,
   {x.sizes[0], x.sizes[1], h0.sizes[1], x.as<float>(), w_hh.as<float>(),
    b_hh.present ? b_hh.as<float>() : nullptr, states.as<float>(), cells.as<float>(),
    saved.as<float>(), reverse, nullptr, nullptr, nullptr, nullptr, nullptr},
   true);
}

void rnn_layer_backward(const View& gx, const View& gsums, const View& gh0, const View& gc0,
                        const View& gy, const View& gh, const View& gc, const View& w_hh,
                        const View& states, const View& cells, const View& saved,
                        std::string_view mode, bool reverse) {
  if (gh.numel == 0) return;
  std::copy_n(gh.as<float>(), gh.numel, gh0.as<float>());
  if (gc.present) std::copy_n(gc.as<float>(), gc.numel, gc0.as<float>());
  HWY_DYNAMIC_DISPATCH(run_recurrence)
  (mode,
   {gy.sizes[0], gy.sizes[1], gy.sizes[2], nullptr, w_hh.as<float>(), nullptr, states.as<float>(),
    cells.as<float>(), saved.as<float>(), reverse, gy.as<float>(), gx.as<float>(),
    gsums.as<float>(), gh0.as<float>(), gc0.as<float>()},
   false);
}

}  // namespace taeda::cpu
#endif
