#include "kernels/cpu/reduce/reduce.h"

#include <algorithm>
#include <memory>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "kernels/cpu/rows/row_io.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kChunk = 1 << 15;  // elements worth a task
constexpr int64_t kMaxSplits = 64;   // of one reduction
constexpr int64_t kMaxResults = 2;
constexpr int64_t kRowsAtOnce = 64;  // rows of dense columns handed over at once
// Dense columns go through a part of each row that is long enough for memory to be fetched ahead.
constexpr int64_t kWideTile = 4096;
constexpr int64_t kWideSplits = 16;         // of a reduction with more columns than a tile has
constexpr int64_t kBetweenLooks = 1 << 17;  // elements, for an interrupt
static_assert(kBetweenLooks % kReduceBlock == 0);

struct Axis {
  int64_t size, in;          // extent and input stride
  int64_t out[kMaxResults];  // result strides; reduced axes have none
};
using Axes = SmallVector<Axis, 5>;

// Outermost first; broadcast (stride 0) axes count as outermost.
void sort_by_stride(Axes& axes) {
  const auto outer = [](const Axis& a, const Axis& b) {
    if (a.in == 0 || b.in == 0) return a.in == 0 && b.in != 0;
    return a.in > b.in;
  };
  if (!std::is_sorted(axes.begin(), axes.end(), outer))  // row-major layouts are
    std::stable_sort(axes.begin(), axes.end(), outer);
}

void coalesce(Axes& axes, size_t results) {
  if (axes.empty()) return;
  size_t last = 0;
  for (size_t i = 1; i < axes.size(); i++) {
    Axis& a = axes[last];
    const Axis& b = axes[i];
    bool joined = a.in == b.in * b.size;
    for (size_t k = 0; k < results; k++) joined = joined && a.out[k] == b.out[k] * b.size;
    if (joined) {
      const int64_t size = a.size;
      a = b;
      a.size = size * b.size;
    } else {
      axes[++last] = b;
    }
  }
  axes.resize(last + 1, Axis{});
}

int64_t product(const Axes& axes) {
  int64_t n = 1;
  for (const Axis& a : axes) n *= a.size;
  return n;
}

// A run of results along the innermost kept axis.
struct Unit {
  int64_t in;
  int64_t out[kMaxResults];
  int64_t n;
};

class Plan {
 public:
  Plan(const Reducer& reducer, const View& x, IntSpan dims, Span<const ReduceResult> results,
       FinalizeFn finalize, const void* params)
      : reducer_(reducer), x_(x), results_(results), finalize_(finalize), params_(params) {
    collect(dims);
    kept_count_ = product(kept_);
    count_ = product(reduced_);
    if (!kept_.empty()) {
      run_ = kept_.back();
      kept_.pop_back();
    }
    if (!reduced_.empty()) {
      inner_ = reduced_.back();
      reduced_.pop_back();
    }
    choose_mode();
  }

  void run() {
    if (kept_count_ == 0) return;
    const int64_t tile = tile_;
    tiles_ = (run_.size + tile - 1) / tile;
    const int64_t units = kept_count_ / run_.size * tiles_;
    const int64_t work = std::max<int64_t>(1, count_) * std::min(run_.size, tile);
    const int64_t chunks =
        units >= 2 * kMaxSplits || count_ < 2
            ? 1
            : std::clamp<int64_t>(
                  work / kChunk, 1,
                  std::min(std::min(run_.size, tile) > kReduceTile ? kWideSplits : kMaxSplits,
                           count_));
    if (chunks == 1) {
      parallel_for(0, units, std::max<int64_t>(1, kChunk / work), [&](int64_t begin, int64_t end) {
        alignas(64) char few[kReduceTile * kMaxStateSize];
        std::unique_ptr<char[]> many;
        if (tile > kReduceTile)
          many.reset(new char[static_cast<size_t>(tile * reducer_.state_size)]);
        char* const states = many ? many.get() : few;
        for (int64_t u = begin; u < end; u++) {
          const Unit unit = unit_at(u);
          reducer_.init(states, unit.n);
          accumulate(unit, 0, count_, states);
          store(unit, states);
        }
      });
      return;
    }
    const int64_t bytes = tile * reducer_.state_size;
    const std::unique_ptr<char[]> partial(new char[static_cast<size_t>(units * chunks * bytes)]);
    // Multiples of the block, so that blocks begin at the same elements whatever the chunk.
    const int64_t step =
        ((count_ + chunks - 1) / chunks + kReduceBlock - 1) / kReduceBlock * kReduceBlock;
    const int64_t length = column_mode_ ? (count_ + chunks - 1) / chunks : step;
    parallel_for(0, units * chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const Unit unit = unit_at(i / chunks);
        const int64_t r = i % chunks * length;
        reducer_.init(&partial[static_cast<size_t>(i * bytes)], unit.n);
        if (r < count_)
          accumulate(unit, r, std::min(count_, r + length),
                     &partial[static_cast<size_t>(i * bytes)]);
      }
    });
    for (int64_t u = 0; u < units; u++) {
      const Unit unit = unit_at(u);
      char* first = &partial[static_cast<size_t>(u * chunks * bytes)];
      // Pairs of neighbours, then pairs of pairs: rounding errors grow with the logarithm of the
      // number of chunks.
      for (int64_t width = 1; width < chunks; width *= 2) {
        for (int64_t i = 0; i + width < chunks; i += 2 * width) {
          reducer_.combine(first + i * bytes, first + (i + width) * bytes, unit.n);
        }
      }
      store(unit, first);
    }
  }

 private:
  void collect(IntSpan dims) {
    const int64_t ndim = x_.ndim();
    SmallVector<bool, 8> is_reduced(static_cast<size_t>(ndim), dims.empty());
    for (int64_t d : dims) {
      if (ndim) is_reduced[static_cast<size_t>(d)] = true;
    }
    const bool keepdim = results_[0].view->ndim() == ndim;
    int64_t o = 0;
    for (int64_t d = 0; d < ndim; d++) {
      const size_t i = static_cast<size_t>(d);
      Axis axis{x_.sizes[i], x_.strides[i], {}};
      if (is_reduced[i]) {
        o += keepdim;
        if (axis.size != 1) reduced_.push_back(axis);
      } else {
        for (size_t k = 0; k < results_.size(); k++)
          axis.out[k] = results_[k].view->strides[static_cast<size_t>(o)];
        o++;
        if (axis.size != 1) kept_.push_back(axis);
      }
    }
    sort_by_stride(kept_);
    if (!reducer_.ordered) sort_by_stride(reduced_);
    coalesce(kept_, results_.size());
    coalesce(reduced_, 0);
  }

  // Rows are read along the reduced axis, columns along the kept one: along the smaller stride,
  // except where that axis is too short to be worth a call.
  void choose_mode() {
    constexpr int64_t kShort = 8;
    const auto stride = [](const Axis& a) { return a.in == 0 ? INT64_MAX : a.in; };
    column_mode_ = run_.size > 1 && (inner_.size == 1 || stride(run_) < stride(inner_));
    if (column_mode_ && run_.size < kShort && inner_.size >= 4 * kShort)
      column_mode_ = false;
    else if (!column_mode_ && inner_.size < kShort && run_.size >= 4 * kShort)
      column_mode_ = true;
    tile_ = kReduceTile;
    if (!column_mode_)
      tile_ = std::clamp<int64_t>(kChunk / std::max<int64_t>(1, count_), 1, kReduceTile);
    dense_ = x_.dtype == reducer_.compute &&
             (column_mode_ ? run_.in == 1 || run_.size == 1 : inner_.in == 1 || inner_.size == 1);
    if (column_mode_ && dense_ && run_.size > kReduceTile && count_ > 1)
      tile_ = std::min(kWideTile, (run_.size + kReduceTile - 1) / kReduceTile * kReduceTile);
  }

  Unit unit_at(int64_t u) const {
    Unit unit{};
    const int64_t start = u % tiles_ * tile_;
    unit.n = std::min(tile_, run_.size - start);
    unit.in = start * run_.in;
    for (size_t k = 0; k < results_.size(); k++) unit.out[k] = start * run_.out[k];
    u /= tiles_;
    for (size_t i = kept_.size(); i-- > 0;) {
      const Axis& a = kept_[i];
      const int64_t at = u % a.size;
      u /= a.size;
      unit.in += at * a.in;
      for (size_t k = 0; k < results_.size(); k++) unit.out[k] += at * a.out[k];
    }
    return unit;
  }

  // Offset of the first element of run r of the reduced axes outside the innermost one.
  int64_t reduced_offset(int64_t r) const {
    int64_t offset = 0;
    for (size_t i = reduced_.size(); i-- > 0;) {
      offset += r % reduced_[i].size * reduced_[i].in;
      r /= reduced_[i].size;
    }
    return offset;
  }

  void accumulate(const Unit& unit, int64_t begin, int64_t end, char* states) const {
    int64_t since_look = 0;
    for (int64_t r = begin; r < end;) {
      const int64_t outer = r / inner_.size, at = r % inner_.size;
      const int64_t n = std::min(inner_.size - at, end - r);
      if ((since_look += n * unit.n) >= kBetweenLooks) check_interrupt(), since_look = 0;
      const int64_t offset = unit.in + reduced_offset(outer) + at * inner_.in;
      if (column_mode_)
        columns(unit, offset, n, r, states);
      else
        rows(unit, offset, n, r, states);
      r += n;
    }
  }

  // n elements as `compute` values.
  void load(char* to, int64_t to_stride, const char* from, int64_t stride, int64_t n) const {
    convert_summand(to, reducer_.compute, to_stride, from, x_.dtype, stride, n,
                    results_[0].view->dtype);
  }

  void rows(const Unit& unit, int64_t offset, int64_t n, int64_t index, char* states) const {
    alignas(64) char buffer[kReduceBlock * 16];
    for (int64_t j = 0; j < unit.n; j++) {
      for (int64_t i = 0; i < n; i += kReduceBlock) {
        if (i > 0 && i % kBetweenLooks == 0) check_interrupt();
        const int64_t m = std::min(kReduceBlock, n - i);
        const char* p = at(x_, offset + j * run_.in + i * inner_.in);
        if (!dense_) {
          load(buffer, 1, p, inner_.in, m);
          p = buffer;
        }
        reducer_.row(states + j * reducer_.state_size, p, m, index + i);
      }
    }
  }

  void columns(const Unit& unit, int64_t offset, int64_t n, int64_t index, char* states) const {
    const int64_t width = std::min(unit.n, kReduceTile);
    const int64_t block = dense_ ? kRowsAtOnce : std::max<int64_t>(1, kReduceBlock / width);
    for (int64_t i = 0, blocks = 1; i < n; i += block, blocks++) {
      if (blocks % 64 == 0) check_interrupt();
      const int64_t m = std::min(block, n - i);
      for (int64_t j = 0; j < unit.n; j += kReduceTile) {
        few_columns(std::min(kReduceTile, unit.n - j), offset + i * inner_.in + j * run_.in, m,
                    index + i, states + j * reducer_.state_size);
      }
    }
  }
  // m rows of at most kReduceTile columns.
  void few_columns(int64_t n, int64_t offset, int64_t m, int64_t index, char* states) const {
    if (dense_) return reducer_.columns(states, at(x_, offset), n, m, inner_.in, index);
    alignas(64) char buffer[kReduceBlock * 16];
    const int64_t item = item_size(reducer_.compute);
    // Gather along the smaller of the two strides.
    if (run_.in <= inner_.in || m == 1) {
      for (int64_t k = 0; k < m; k++) {
        load(buffer + k * n * item, 1, at(x_, offset + k * inner_.in), run_.in, n);
      }
    } else {
      for (int64_t j = 0; j < n; j++) {
        load(buffer + j * item, n, at(x_, offset + j * run_.in), inner_.in, m);
      }
    }
    reducer_.columns(states, buffer, n, m, n, index);
  }

  void store(const Unit& unit, const char* states) const {
    alignas(64) char buffers[kMaxResults][kReduceTile * 16];
    void* outs[kMaxResults] = {};
    for (size_t k = 0; k < results_.size(); k++) outs[k] = buffers[k];
    for (int64_t j = 0; j < unit.n; j += kReduceTile) {
      const int64_t n = std::min(kReduceTile, unit.n - j);
      finalize_(outs, states + j * reducer_.state_size, n, count_, params_);
      for (size_t k = 0; k < results_.size(); k++) {
        const View& v = *results_[k].view;
        convert_row(at(v, unit.out[k] + j * run_.out[k]), v.dtype, run_.out[k], buffers[k],
                    results_[k].type, 1, n);
      }
    }
  }

  const Reducer& reducer_;
  const View& x_;
  Span<const ReduceResult> results_;
  FinalizeFn finalize_;
  const void* params_;
  Axes kept_, reduced_;  // without their innermost axes:
  Axis run_{1, 0, {}}, inner_{1, 0, {}};
  int64_t kept_count_ = 1, count_ = 1, tile_ = 1, tiles_ = 1;
  bool column_mode_ = false, dense_ = false;
};

}  // namespace

void reduce(const Reducer& reducer, const View& x, IntSpan dims, Span<const ReduceResult> results,
            FinalizeFn finalize, const void* params) {
  Plan(reducer, x, dims, results, finalize, params).run();
}

}  // namespace taeda::cpu
