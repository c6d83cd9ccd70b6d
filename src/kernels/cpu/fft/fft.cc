// Discrete Fourier transforms of tensors, dimension by dimension.
//
// Transforms along a dimension with neighbours, and short ones, are done a vector's lanes at a
// time; long lines one by one (kernels.h). Real transforms of an even length n are complex ones of
// length n / 2, whose elements are pairs of neighbours (Press et al., "Numerical Recipes", 12.3).
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/fft/plan.h"
#include "kernels/cpu/index/gather.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kChunk = 1 << 14;     // elements that a thread takes at once
constexpr int64_t kShortLine = 1 << 8;  // elements of a line up to which many are done in lanes
constexpr int64_t kShortPanel =
    1 << 10;                        // the same, of lines that are neighbours only in what is read
constexpr int64_t kFar = 1 << 18;   // bytes from which on what is read next is asked for
constexpr int64_t kFewPages = 15;   // elements of a line, in a page each
constexpr int64_t kTileGroups = 4;  // that are transformed in a copy
constexpr int64_t kThreadedLine = 1 << 15;  // elements of a line that threads share

// Offsets of the lines along `dim` in two views that agree in the other dimensions. The last of
// those is one that lines are neighbours in, if there is any.
class Lines {
 public:
  Lines(const View& a, const View& b, int64_t dim) {
    for (int64_t d = 0; d < a.ndim(); d++) {
      if (d == dim || a.sizes[d] == 1) continue;
      dims_.push_back({a.sizes[d], a.strides[d], b.strides[d]});
      count *= a.sizes[d];
    }
    std::stable_sort(dims_.begin(), dims_.end(),
                     [](const Dim& x, const Dim& y) { return x.b > y.b; });
    // Dimensions that lie in memory like one.
    for (size_t d = dims_.size(); d-- > 1;) {
      Dim &outer = dims_[d - 1], &inner = dims_[d];
      if (outer.a != inner.a * inner.size || outer.b != inner.b * inner.size) continue;
      outer = {outer.size * inner.size, inner.a, inner.b};
      dims_.erase(d);
    }
    if (dims_.empty() || dims_.back().a != 1) return;
    read_together = dims_.back().size;
    if (dims_.back().b == 1) neighbours = read_together;
  }
  void offsets(int64_t line, int64_t& a, int64_t& b) const {
    a = b = 0;
    for (size_t d = dims_.size(); d-- > 0;) {
      const int64_t i = d ? line % dims_[d].size : line;  // divisions count for short lines
      if (d) line /= dims_[d].size;
      a += i * dims_[d].a;
      b += i * dims_[d].b;
    }
  }
  // f(i, a, b) with the offsets of line + i, i < n: divides once for lines of the last dimension.
  template <class F>
  void each(int64_t line, int64_t n, const F& f) const {
    const Dim last = dims_.empty() ? Dim{1, 0, 0} : dims_.back();
    for (int64_t i = 0; i < n;) {
      int64_t a, b;
      offsets(line + i, a, b);
      const int64_t past = dims_.size() > 1 ? (line + i) % last.size : line + i;
      const int64_t end = std::min(n, i + last.size - past);
      for (; i < end; i++, a += last.a, b += last.b) f(i, a, b);
    }
  }
  // How many lines from this one on lie side by side in the first view, up to a limit.
  int64_t side_by_side(int64_t line, int64_t limit) const {
    if (dims_.empty() || dims_.back().a != 1) return 1;
    return std::min(limit, dims_.back().size - line % dims_.back().size);
  }
  int64_t count = 1;
  // Whether lines are the same distances apart, all of them.
  bool regular() const { return dims_.size() == 1; }
  int64_t neighbours = 1;     // lines of such a group
  int64_t read_together = 1;  // lines that are neighbours in the first view

 private:
  struct Dim {
    int64_t size, a, b;
  };
  SmallVector<Dim, 8> dims_;
};

// Transforms along one dimension of `in`.
template <class T>
struct Transform {
  const View& out;
  const View& in;
  int64_t dim;
  FftKind kind;
  bool backward;
  T scale;

  int64_t size() const { return kind == FftKind::kToReal ? out.sizes[dim] : in.sizes[dim]; }
  int64_t outputs() const { return out.sizes[dim]; }
  // A real transform of all n results has no pairs.
  bool paired() const {
    return kind != FftKind::kComplex && size() % 2 == 0 &&
           (kind == FftKind::kToReal || outputs() < size());
  }
  // Numbers of T that an element is.
  int64_t in_width() const { return kind == FftKind::kFromReal ? 1 : 2; }
  int64_t out_width() const { return kind == FftKind::kToReal ? 1 : 2; }
  int64_t in_stride() const { return in.strides[dim]; }
  int64_t out_stride() const { return out.strides[dim]; }
  // Whether lines may be read as neighbours and written one by one.
  bool spreads(const Lines& lines, int64_t lanes) const {
    return kind == FftKind::kComplex && out_stride() == 1 && lines.read_together >= lanes &&
           size() > 1 && size() <= kShortPanel;
  }
  const T* in_at(int64_t offset) const { return in.as<T>() + in_width() * offset; }
  T* out_at(int64_t offset) const { return out.as<T>() + out_width() * offset; }
};

// --- a vector's lanes of lines at a time
// -----------------------------------------------------------

// Lines in groups of as many as there are lanes: whole groups within each run of `inner` lines that
// follow each other, then groups of what all runs leave over.
class LineGroups {
 public:
  LineGroups(const Lines& lines, int64_t inner, int64_t lanes)
      : lines_(lines),
        inner_(inner),
        lanes_(lanes),
        each_(inner / lanes),
        rest_(inner % lanes),
        runs_(lines.count / inner) {}

  int64_t whole() const { return runs_ * each_; }
  // How many groups follow each other in their run, this one among them.
  int64_t from_here(int64_t group) const { return each_ - group % each_; }
  int64_t count() const { return whole() + (runs_ * rest_ + lanes_ - 1) / lanes_; }

  // f(l, a, b) with the offsets of the first n lines of a whole group, which are those of lanes l.
  template <class F>
  void each_of(int64_t group, int64_t n, const F& f) const {
    const int64_t run = runs_ == 1 ? 0 : group / each_;
    lines_.each(run * inner_ + (group - run * each_) * lanes_, n, f);
  }
  // The same of a group behind those: how many lines it has.
  template <class F>
  int64_t each_left(int64_t group, const F& f) const {
    const int64_t first = (group - whole()) * lanes_, n = std::min(lanes_, runs_ * rest_ - first);
    for (int64_t l = 0, count = 0; l < n; l += count) {
      const int64_t run = (first + l) / rest_, past = (first + l) % rest_;
      count = std::min(n - l, rest_ - past);
      lines_.each(run * inner_ + each_ * lanes_ + past, count,
                  [&](int64_t i, int64_t a, int64_t b) { f(l + i, a, b); });
    }
    return n;
  }

 private:
  const Lines& lines_;
  const int64_t inner_, lanes_, each_, rest_, runs_;
};

// What of the lanes' memory lies side by side.
enum class Beside : uint8_t { kNothing, kRead, kBoth };

template <class T>
class LanesRun {
 public:
  LanesRun(const Transform<T>& t, FftPlan<T>& plan, const Lines& lines)
      : t_(t),
        lines_(lines),
        kernels_(fft_kernels<T>()),
        beside_(lines.neighbours >= lanes() ? Beside::kBoth
                : t.spreads(lines, lanes()) ? Beside::kRead
                                            : Beside::kNothing),
        groups_(lines,
                beside_ == Beside::kBoth   ? lines.neighbours
                : beside_ == Beside::kRead ? lines.read_together
                                           : lines.count,
                lanes()),
        size_(plan.size()) {
    all_.columns = plan.columns();
    all_.half_roots = t.paired() ? plan.half_roots() : nullptr;
    all_.kind = t.kind;
    all_.n = t.size();
    all_.outputs = t.outputs();
    all_.backward = t.backward;
    all_.scale = t.scale;
    all_.from_stride = t.in_width() * t.in_stride();
    all_.to_stride = t.out_width() * t.out_stride();
  }

  void run() const {
    const int64_t grain = std::max<int64_t>(1, kChunk / (size_ * lanes()));
    parallel_for(0, groups_.count(), grain, [&](int64_t begin, int64_t end) {
      const Scratch<T> panel(2 * lanes() * (std::max(size_, t_.size() / 2) + 1));
      const int64_t left = std::clamp(groups_.whole(), begin, end);
      if (beside_ == Beside::kBoth)
        is_scattered() ? run_tiles(begin, left, panel.data())
                       : run_neighbours(begin, left, panel.data());
      else if (beside_ == Beside::kRead)
        run_spread(begin, left, panel.data());
      else
        run_apart(begin, left, panel.data());
      run_left(left, end, panel.data());
    });
  }

 private:
  int64_t lanes() const { return kernels_.lanes; }
  // Sets the addresses of lanes. A copy of `this`'s members: what is stored might, for the
  // compiler, be theirs.
  auto placing(FftLanes<T>& work) const {
    return
        [in = t_.in_at(0), out = t_.out_at(0), in_width = t_.in_width(), out_width = t_.out_width(),
         from = work.from, to = work.to](int64_t l, int64_t a, int64_t b) {
          from[l] = in + in_width * a;
          to[l] = out + out_width * b;
        };
  }

  void run_neighbours(int64_t begin, int64_t end, T* panel) const {
    FftLanes<T> work = all_;
    work.from_neighbours = work.to_neighbours = true;
    for (int64_t group = begin; group < end; group++) {
      groups_.each_of(group, 1, placing(work));
      kernels_.run_lanes(work, panel);
    }
  }

  // Whether each element of a line is in another page, of which few are known to the processor.
  bool is_scattered() const {
    constexpr int64_t kPage = 4096 / sizeof(T), kFirstCache = (1 << 15) / sizeof(T);
    return t_.kind == FftKind::kComplex && t_.size() > kFewPages && all_.from_stride >= kPage &&
           all_.to_stride >= kPage && t_.size() * kTileGroups * 2 * lanes() <= kFirstCache;
  }
  // Some groups at once, in a copy, so that a page is looked for once for all of them.
  void run_tiles(int64_t begin, int64_t end, T* panel) const {
    const int64_t n = t_.size(), row = 2 * lanes();
    const Scratch<T> tile(kTileGroups * row * n);
    FftLanes<T> work = all_;
    work.from_neighbours = work.to_neighbours = true;
    for (int64_t group = begin, count = 0; group < end; group += count) {
      count = std::min({kTileGroups, end - group, groups_.from_here(group)});
      groups_.each_of(group, 1, placing(work));
      const T* const from = work.from[0];
      T* const to = work.to[0];
      const int64_t width = count * row;
      for (int64_t k = 0; k < n; k++)
        std::copy_n(from + k * all_.from_stride, width, tile.data() + k * width);
      work.from_stride = work.to_stride = width;
      for (int64_t g = 0; g < count; g++) {
        work.from[0] = work.to[0] = tile.data() + g * row;
        kernels_.run_lanes(work, panel);
      }
      for (int64_t k = 0; k < n; k++)
        std::copy_n(tile.data() + k * width, width, to + k * all_.to_stride);
    }
  }

  void run_spread(int64_t begin, int64_t end, T* panel) const {
    FftLanes<T> work = all_;
    work.from_neighbours = true;
    for (int64_t group = begin; group < end; group++) {
      groups_.each_of(group, lanes(), placing(work));
      T* in_order[kMostLanes];
      std::copy_n(work.to, lanes(), in_order);
      for (int64_t l = 0; l < lanes(); l++) work.to[l] = in_order[fft_lane(l, lanes())];
      kernels_.run_lanes(work, panel);
    }
  }

  // Lines that are the same distance apart, all of them, take a step from one group to the next.
  void run_apart(int64_t begin, int64_t end, T* panel) const {
    FftLanes<T> work = all_;
    const bool steps = lines_.regular() && lanes() > 1;
    for (int64_t group = begin; group < end; group++) {
      if (group == begin || !steps)
        groups_.each_of(group, lanes(), placing(work));
      else
        step(work);
      if (group == begin && steps) look_ahead(work);
      kernels_.run_lanes(work, panel);
    }
  }
  void step(FftLanes<T>& work) const {
    const int64_t in_step = lanes() * (work.from[1] - work.from[0]),
                  out_step = lanes() * (work.to[1] - work.to[0]), n = lanes();
    for (int64_t l = 0; l < n; l++) work.from[l] += in_step, work.to[l] += out_step;
    if (work.next_from) work.next_from += in_step, work.next_to += out_step;
  }
  // Sets what the next lanes read and write, if that is far away and without gaps.
  void look_ahead(FftLanes<T>& work) const {
    const int64_t in_line = work.from[1] - work.from[0], out_line = work.to[1] - work.to[0];
    if (t_.in.numel * t_.in_width() * int64_t{sizeof(T)} <= kFar ||
        in_line != t_.in.sizes[t_.dim] * all_.from_stride ||
        out_line != t_.out.sizes[t_.dim] * all_.to_stride)
      return;
    work.next_from = work.from[0] + lanes() * in_line;
    work.next_to = work.to[0] + lanes() * out_line;
  }

  void run_left(int64_t begin, int64_t end, T* panel) const {
    FftLanes<T> work = all_;
    for (int64_t group = begin; group < end; group++) {
      const int64_t n = groups_.each_left(group, placing(work));
      std::fill(work.from + n, work.from + lanes(), work.from[n - 1]);
      std::fill(work.to + n, work.to + lanes(), work.to[n - 1]);
      kernels_.run_lanes(work, panel);
    }
  }

  const Transform<T>& t_;
  const Lines& lines_;
  const FftKernels<T>& kernels_;
  const Beside beside_;
  const LineGroups groups_;
  const int64_t size_;  // of the plan
  FftLanes<T> all_{};
};

// --- line by line
// ----------------------------------------------------------------------------------

// A line's elements without gaps: n numbers or complex numbers.
template <class C>
void gather(const C* from, int64_t stride, int64_t n, C* to) {
  for (int64_t k = 0; k < n; k++) to[k] = from[k * stride];
}
template <class C>
void scatter(const C* from, int64_t n, C* to, int64_t stride) {
  for (int64_t k = 0; k < n; k++) to[k * stride] = from[k];
}

// One line of a transform: `line` has 2 (n + 1) numbers of working memory.
template <class T>
class LineRun {
  using C = std::complex<T>;

 public:
  LineRun(const Transform<T>& t, FftPlan<T>& plan)
      : t_(t), plan_(plan), roots_(t.paired() ? plan.half_roots() : nullptr) {}

  int64_t scratch() const { return plan_.scratch() + 2 * (t_.size() + 1); }

  void run(const T* in, T* out, T* scratch) const {
    T* const line = scratch + plan_.scratch();
    if (t_.kind == FftKind::kComplex) return complex(in, out, line, scratch);
    if (t_.kind == FftKind::kFromReal)
      return t_.paired() ? pairs_from_real(in, out, line, scratch)
                         : from_real(in, out, line, scratch);
    t_.paired() ? pairs_to_real(in, out, line, scratch) : to_real(in, out, line, scratch);
  }

 private:
  static C* complexes(T* p) { return reinterpret_cast<C*>(p); }
  static const C* complexes(const T* p) { return reinterpret_cast<const C*>(p); }
  int64_t half() const { return t_.size() / 2; }
  // `in`, or the copy of a line with gaps in `line`.
  const T* complex_input(const T* in, int64_t n, T* line) const {
    if (t_.in_stride() == 1) return in;
    gather(complexes(in), t_.in_stride(), n, complexes(line));
    return line;
  }

  void complex(const T* in, T* out, T* line, T* scratch) const {
    const int64_t n = t_.size();
    const T* from = complex_input(in, n, line);
    T* const to = t_.out_stride() == 1 ? out : line;
    plan_.run(from, to, t_.scale, t_.backward, scratch);
    if (to == line) scatter(complexes(line), n, complexes(out), t_.out_stride());
  }
  void pairs_from_real(const T* in, T* out, T* line, T* scratch) const {
    const T* from = in;
    if (t_.in_stride() != 1) {
      gather(in, t_.in_stride(), t_.size(), line);
      from = line;
    }
    plan_.run(from, line, T(1), false, scratch);
    const bool dense = t_.out_stride() == 1;
    mix(line, dense ? out : line, T(0.5) * t_.scale, false);
    if (!dense) scatter(complexes(line), t_.outputs(), complexes(out), t_.out_stride());
  }
  void from_real(const T* in, T* out, T* line, T* scratch) const {
    for (int64_t k = 0; k < t_.size(); k++) complexes(line)[k] = C(in[k * t_.in_stride()], 0);
    plan_.run(line, line, t_.scale, false, scratch);
    scatter(complexes(line), t_.outputs(), complexes(out), t_.out_stride());
  }
  void pairs_to_real(const T* in, T* out, T* line, T* scratch) const {
    const T* from = complex_input(in, half() + 1, line);
    // Pairs are read before either is written: `line` may be both.
    mix(from, line, T(1), true);
    T* const to = t_.out_stride() == 1 ? out : line;
    plan_.run(line, to, t_.scale, true, scratch);
    if (to == line) scatter(line, t_.size(), out, t_.out_stride());
  }
  void to_real(const T* in, T* out, T* line, T* scratch) const {
    const int64_t n = t_.size();
    C* const z = complexes(line);
    z[0] = C(complexes(in)[0].real(), 0);
    for (int64_t k = 1; 2 * k < n; k++) {
      z[k] = complexes(in)[k * t_.in_stride()];
      z[n - k] = std::conj(z[k]);
    }
    plan_.run(line, line, t_.scale, true, scratch);
    for (int64_t k = 0; k < n; k++) out[k * t_.out_stride()] = line[2 * k];
  }
  void mix(const T* from, T* to, T scale, bool inverse) const {
    const auto run = fft_kernels<T>().mix_pairs;
    parallel_for(0, half() / 2 + 1, kThreadedLine / 2, [&](int64_t begin, int64_t end) {
      run(from, to, half(), roots_, scale, inverse, begin, end);
    });
  }

  const Transform<T>& t_;
  const FftPlan<T>& plan_;
  const T* const roots_;
};

template <class T>
void run_lines(const Transform<T>& t, FftPlan<T>& plan, const Lines& lines) {
  // What a line of the cache holds of lines side by side is read at once.
  const int64_t width = t.in_width(), length = t.in.sizes[t.dim];
  const int64_t bytes = width * int64_t{sizeof(T)}, group = t.in_stride() == 1 ? 1 : 64 / bytes;
  View gathered = t.in;
  DimVector strides(t.in.strides);
  strides[t.dim] = 1;
  gathered.strides = strides;
  const Transform<T> dense{t.out, gathered, t.dim, t.kind, t.backward, t.scale};
  const LineRun<T> run(t, plan), run_gathered(dense, plan);
  const auto some = [&](int64_t begin, int64_t end) {
    const Scratch<T> scratch(run.scratch()), copies(group > 1 ? group * length * width : 0);
    for (int64_t line = begin; line < end;) {
      int64_t a, b;
      lines.offsets(line, a, b);
      const int64_t count = lines.side_by_side(line, std::min(group, end - line));
      const T* const from = t.in_at(a);
      if (count == 1)
        run.run(from, t.out_at(b), scratch.data());
      else
        gather_tile(copies.data(), reinterpret_cast<const char*>(from), bytes,
                    t.in_stride() * bytes, length, count);
      for (int64_t l = 0; count > 1 && l < count; l++) {
        lines.offsets(line + l, a, b);
        run_gathered.run(copies.data() + l * length * width, t.out_at(b), scratch.data());
      }
      line += count;
    }
  };
  if (plan.size() >= kThreadedLine) return some(0, lines.count);
  parallel_for(0, lines.count, std::max<int64_t>(1, kChunk / plan.size()), some);
}

template <class T>
void run(const Transform<T>& t) {
  const auto plan = FftPlan<T>::of(t.paired() ? t.size() / 2 : t.size());
  const Lines lines(t.in, t.out, t.dim);
  const int64_t lanes = fft_kernels<T>().lanes;
  const bool dense = t.in_stride() == 1 && t.out_stride() == 1;
  const bool many = dense && plan->size() <= kShortLine && lines.count >= lanes;
  const bool panels =
      plan->columns() && (many || lines.neighbours >= lanes || t.spreads(lines, lanes));
  if (plan->has_line() && !panels) return run_lines(t, *plan, lines);
  LanesRun<T>(t, *plan, lines).run();
}

// All n results of real numbers along `dim`, without gaps: half of them, and the conjugates of
// those.
template <class T>
void run_both_halves(const View& out, const View& in, int64_t dim, T scale) {
  using C = std::complex<T>;
  const int64_t n = in.sizes[dim], half = n / 2 + 1;
  View first = out;
  DimVector sizes(out.sizes);
  sizes[dim] = half;
  first.sizes = sizes;
  first.numel = out.numel / n * half;
  run(Transform<T>{first, in, dim, FftKind::kFromReal, false, scale});
  const Lines lines(out, out, dim);
  parallel_for(0, lines.count, std::max<int64_t>(1, kChunk / n), [&](int64_t begin, int64_t end) {
    lines.each(begin, end - begin, [&](int64_t, int64_t at, int64_t) {
      C* const line = out.as<C>() + at;
      for (int64_t k = half; k < n; k++) {
        line[n - k] += C(0);  // an imaginary part of -0 becomes 0
        line[k] = std::conj(line[n - k]);
      }
    });
  });
}

// The factor of a normalization: 0 none, 1 the root of the number of elements, 2 the number.
double factor(int64_t normalization, int64_t elements) {
  if (normalization == 0) return 1;
  const double n = static_cast<double>(elements);
  return normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

int64_t elements_along(const View& v, IntSpan dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= v.sizes[d];
  return n;
}

// f(out, in) for slices of the first dimension, if it is not transformed, that stay in the second
// cache from one dimension's transform to the next.
template <class F>
void over_slices(const View& out, const View& in, IntSpan dims, const F& f) {
  constexpr int64_t kSlice = 1 << 19;  // bytes
  const int64_t count = out.ndim() ? out.sizes[0] : 0;
  const bool kept = std::find(dims.begin(), dims.end(), 0) == dims.end();
  if (dims.size() < 2 || !kept || count < 2) return f(out, in);
  const int64_t bytes = out.numel / count * item_size(out.dtype);
  const int64_t each = std::max<int64_t>(1, kSlice / std::max<int64_t>(1, bytes));
  for (int64_t begin = 0; begin < count; begin += each) {
    const int64_t n = std::min(each, count - begin);
    DimVector out_sizes(out.sizes), in_sizes(in.sizes);
    out_sizes[0] = in_sizes[0] = n;
    const auto slice = [&](const View& v, const DimVector& sizes) {
      View part = v;
      part.data = v.as<char>() + begin * v.strides[0] * item_size(v.dtype);
      part.sizes = sizes;
      part.numel = v.numel / count * n;
      return part;
    };
    f(slice(out, out_sizes), slice(in, in_sizes));
  }
}

}  // namespace

void fft_c2c(const View& out, const View& self, IntSpan dim, int64_t normalization, bool forward) {
  if (out.numel == 0) return;
  with_dtype<ComplexTypes>(self.dtype, [&]<class C>(C) {
    using T = typename C::value_type;
    const T scale = static_cast<T>(factor(normalization, elements_along(out, dim)));
    over_slices(out, self, dim, [&](const View& to, const View& from) {
      // The last dimension first: it is read in order where the input is not in a cache.
      for (size_t i = dim.size(); i-- > 0;) {
        const bool first = i + 1 == dim.size();
        run(Transform<T>{to, first ? from : to, dim[i], FftKind::kComplex, !forward,
                         first ? scale : T(1)});
      }
    });
  });
}

void fft_r2c(const View& out, const View& self, IntSpan dim, int64_t normalization, bool) {
  if (out.numel == 0) return;
  with_dtype<WideFloating>(self.dtype, [&]<class T>(T) {
    const T scale = static_cast<T>(factor(normalization, elements_along(self, dim)));
    over_slices(out, self, dim, [&](const View& to, const View& from) {
      const int64_t last = dim.back(), n = from.sizes[last];
      if (to.sizes[last] == n && n % 2 == 0 && to.strides[last] == 1)
        run_both_halves(to, from, last, scale);
      else
        run(Transform<T>{to, from, last, FftKind::kFromReal, false, scale});
      for (size_t i = 0; i + 1 < dim.size(); i++)
        run(Transform<T>{to, to, dim[i], FftKind::kComplex, false, T(1)});
    });
  });
}

void fft_c2r(const View& out, const View& self, IntSpan dim, int64_t normalization, int64_t) {
  if (out.numel == 0) return;
  with_dtype<WideFloating>(out.dtype, [&]<class T>(T) {
    const T scale = static_cast<T>(factor(normalization, elements_along(out, dim)));
    if (dim.size() == 1)
      return run(Transform<T>{out, self, dim.back(), FftKind::kToReal, true, scale});
    // A dense copy that the other dimensions are transformed in.
    const Scratch<std::complex<T>> memory(self.numel);
    DimVector strides(self.ndim(), 1);
    for (int64_t d = self.ndim() - 1; d > 0; d--) strides[d - 1] = strides[d] * self.sizes[d];
    View copy = self;
    copy.data = memory.data();
    copy.strides = strides;
    for (size_t i = 0; i + 1 < dim.size(); i++)
      run(Transform<T>{copy, i ? copy : self, dim[i], FftKind::kComplex, true, T(1)});
    run(Transform<T>{out, copy, dim.back(), FftKind::kToReal, true, scale});
  });
}

}  // namespace taeda::cpu
