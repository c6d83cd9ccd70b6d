// gather, scatter and scatter_reduce: elements addressed along one dimension by an index tensor.
//
//   gather:  out[i][j][k] = self[index[i][j][k]][j][k]        (dim = 0)
//   scatter: self[index[i][j][k]][j][k] op= src[i][j][k]
//
// Indices are checked some hundred at a time, while they are in the cache, before these are used:
// as in PyTorch, one outside may leave a tensor that is written in place with part of the values.
// Lines along `dim` never share a destination, so they run in parallel; along a line order is kept:
// the last of several writes wins, and sums are the same in every run.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/index/combine_rows.h"
#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/simd/prefetch.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/simd/stream.h"
#include "kernels/optional.h"

// Checking indices is a loop that vector code pays for, and so are the loops that move elements.
#pragma GCC optimize("O3")

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 13;
constexpr int64_t kRun = 256;      // neighbouring lines of one task, at least
constexpr int64_t kChecked = 256;  // indices at a time
constexpr int64_t kCheckGrain = 1 << 15;

// copy_if_inside for indices `step` apart: the sign bits say it, with no branch in the loop. One
// copy of it serves all element types.
[[gnu::noinline]] bool copy_inside(int64_t* to, const int64_t* index, int64_t n, int64_t step,
                                   int64_t size) {
  if (step == 1) return copy_if_inside(to, index, n, size);
  const uint64_t last = static_cast<uint64_t>(size - 1);  // unsigned: any index may stand here
  uint64_t outside = 0;
  for (int64_t i = 0; i < n; i++) {
    const auto k = static_cast<uint64_t>(index[i * step]);
    to[i] = static_cast<int64_t>(k);
    outside |= k | (last - k);
  }
  return outside >> 63 == 0;
}

// Raises RuntimeError, as in PyTorch, for the first index outside, in row-major order.
[[noreturn]] void fail_outside(const View& index, int64_t dim, int64_t size) {
  const int64_t* data = index.as<int64_t>();
  for_each_offset(index, [&](int64_t i) {
    const int64_t k = data[i];
    TD_CHECK(k >= 0 && k < size, "index {} is out of bounds for dimension {} with size {}", k, dim,
             size);
  });
  fail(ErrorKind::kRuntime, kIndicesChanged);
}

// A 0-d tensor counts as one dimension of one element.
int64_t size_along(const View& v, int64_t dim) {
  return v.ndim() ? v.sizes[static_cast<size_t>(dim)] : 1;
}
int64_t stride_along(const View& v, int64_t dim) {
  return v.ndim() ? v.strides[static_cast<size_t>(dim)] : 0;
}

// Where elements lie: offsets into the addressed tensor and the other one, and checked indices.
struct Offsets {
  int64_t self, other;
  const int64_t* index;
};
struct Steps {
  int64_t self, other, index;
};

// What is done with elements: one loop a type; all that leads to it is shared. An index counts
// `scale` elements of self.
struct Move {
  using Loop = void(const Move&, int64_t n, Offsets at, Steps by, int64_t scale);
  Loop* loop;
  void* to;
  const void* from = nullptr;
  Reduce how = Reduce::kSet;
  bool streams = false;  // past the cache what is written along lines
};

// move(self offset, other offset) for n elements. The dense cases keep products out of the loop.
template <class F>
void move_each(int64_t n, Offsets at, Steps by, int64_t scale, const F& move) {
  if (by.other == 1 && by.self == 0 && scale == 1) {
    for (int64_t i = 0; i < n; i++) move(at.self + at.index[i], at.other + i);
  } else if (by.other == 1 && by.self == 1) {
    for (int64_t i = 0; i < n; i++) move(at.self + i + at.index[i] * scale, at.other + i);
  } else {
    for (int64_t i = 0; i < n; i++)
      move(at.self + i * by.self + at.index[i] * scale, at.other + i * by.other);
  }
}

// The index space as (outer dimensions) x (a second one) x (dim).
class Lines {
 public:
  // `self` is the tensor that is addressed; its own size along `dim` may differ from the index's.
  Lines(const View& self, const View& other, const View& index, int64_t dim)
      : self_(self), index_(index), dim_(dim), self_size_(size_along(self, dim)) {
    for (int64_t d = 0; d < std::max<int64_t>(1, index.ndim()); d++) {
      const Axis a{size_along(index, d), stride_along(self, d), stride_along(other, d),
                   stride_along(index, d)};
      if (d == dim)
        along_ = a;
      else
        outer_.push_back(a);
    }
    if (!outer_.empty()) {
      second_ = outer_.back();
      outer_.pop_back();
    }
    for (const Axis& a : outer_) count_ *= a.size;
  }

  // Raises RuntimeError if an index is outside: what writes a tensor calls this first.
  void check() const {
    const auto nothing = [](const Move&, int64_t, Offsets, Steps, int64_t) {};
    if (!is_dense(index_)) return each({nothing, nullptr});
    const int64_t* const index = index_.as<int64_t>();
    parallel_for(0, index_.numel, kCheckGrain, [&](int64_t begin, int64_t end) {
      if (!all_inside(index + begin, end - begin, self_size_))
        fail_outside(index_, dim_, self_size_);
    });
  }

  // The loop of `move` over all elements, in parallel over lines, at most kChecked at a time.
  // Raises RuntimeError where an index is outside.
  void each(const Move& move) const {
    if (along_.size == 0 || second_.size == 0 || count_ == 0) return;
    const int64_t chunk = std::max<int64_t>(kRun, kWork / along_.size);
    const int64_t chunks = (second_.size + chunk - 1) / chunk;
    parallel_for(0, count_ * chunks,
                 std::max<int64_t>(1, kWork / (along_.size * std::min(chunk, second_.size))),
                 [&](int64_t begin, int64_t end) {
                   StreamFence fence;
                   fence.pending = move.streams;
                   for (int64_t t = begin; t < end; t++) {
                     const int64_t first = t % chunks * chunk;
                     block(t / chunks, first, std::min(second_.size, first + chunk), move);
                   }
                 });
  }

 private:
  struct Axis {
    int64_t size, self, other, index;
  };
  void block(int64_t line, int64_t begin, int64_t end, const Move& move) const {
    const int64_t* const index = index_.as<int64_t>();
    int64_t s = 0, o = 0, x = 0;
    for (size_t i = outer_.size(); i-- > 0;) {
      const Axis& a = outer_[i];
      const int64_t at = line % a.size;
      line /= a.size;
      s += at * a.self;
      o += at * a.other;
      x += at * a.index;
    }
    const Axis &p = along_, &q = second_;
    // Along the memory of indices, but for lines too short for a loop of their own.
    const bool short_lines = p.size < kShort && q.size > p.size;
    Looks looks;
    if ((p.index <= q.index && !short_lines) || q.size == 1) {
      for (int64_t j = begin; j < end; j++) {
        run(p.size, {s + j * q.self, o + j * q.other, index + x + j * q.index},
            {0, p.other, p.index}, p.self, move, j + 1 < end ? s + (j + 1) * q.self : -1);
        looks.after(p.size);
      }
    } else {
      for (int64_t i = 0; i < p.size; i++) {
        run(end - begin,
            {s + begin * q.self, o + i * p.other + begin * q.other,
             index + x + i * p.index + begin * q.index},
            {q.self, q.other, q.index}, p.self, move, -1);
        looks.after(end - begin);
      }
    }
  }

  // n elements along one axis; an index counts `scale` elements of self. The line of self that
  // starts at `next` (-1: none) will be addressed in any order, so it is prefetched.
  void run(int64_t n, Offsets at, Steps by, int64_t scale, const Move& move, int64_t next) const {
    const bool ahead = next >= 0 && scale == 1 && n >= kChecked &&
                       self_size_ * item_size(self_.dtype) <= kMaxAhead;
    int64_t checked[kChecked];
    Looks looks;
    for (int64_t first = 0; first < n; first += kChecked) {
      const int64_t m = std::min(kChecked, n - first);
      const Offsets from{at.self + first * by.self, at.other + first * by.other, checked};
      const int64_t done = self_size_ * first / n, left = self_size_ * (first + m) / n - done;
      if (ahead) prefetch_lines(element(next + done), left * item_size(self_.dtype));
      if (!copy_inside(checked, at.index + first * by.index, m, by.index, self_size_))
        fail_outside(index_, dim_, self_size_);
      move.loop(move, m, from, by, scale);
      looks.after(m);
    }
  }
  const char* element(int64_t i) const { return at(self_, i); }

  static constexpr int64_t kShort = 8;
  static constexpr int64_t kMaxAhead = 32 * 1024;  // bytes
  const View& self_;
  const View& index_;
  const int64_t dim_, self_size_;
  SmallVector<Axis, 5> outer_;
  Axis along_{1, 0, 0, 0}, second_{1, 0, 0, 0};
  int64_t count_ = 1;
};

template <class T>
T combine(Reduce how, const T& a, const T& b) {
  if constexpr (is_reduced_floating(kDTypeOf<T>)) {
    return T(combine<float>(how, static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return how == Reduce::kSum || how == Reduce::kMax ? a || b : a && b;
  } else {
    switch (how) {
      case Reduce::kSum:
        if constexpr (std::is_integral_v<T>)
          return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
        else
          return a + b;
      case Reduce::kProd:
        if constexpr (std::is_integral_v<T>)
          return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
        else
          return a * b;
      default:
        if constexpr (is_complex(kDTypeOf<T>))
          return b;
        else if (b != b)
          return b;
        else if (how == Reduce::kMin)
          return b < a ? b : a;
        else
          return b > a ? b : a;
    }
  }
}

template <class T>
T identity(Reduce how) {
  using L = std::numeric_limits<T>;
  if constexpr (is_reduced_floating(kDTypeOf<T>)) {
    return T(identity<float>(how));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return how == Reduce::kProd || how == Reduce::kMin;
  } else if constexpr (is_complex(kDTypeOf<T>)) {
    return how == Reduce::kProd ? T(1) : T(0);
  } else if constexpr (std::is_floating_point_v<T>) {
    return how == Reduce::kProd  ? T(1)
           : how == Reduce::kMin ? L::infinity()
           : how == Reduce::kMax ? -L::infinity()
                                 : T(0);
  } else {
    return how == Reduce::kProd  ? T(1)
           : how == Reduce::kMin ? L::max()
           : how == Reduce::kMax ? L::lowest()
                                 : T(0);
  }
}

template <class T>
void set_loop(const Move& move, int64_t n, Offsets at, Steps by, int64_t scale) {
  T* const to = static_cast<T*>(move.to);
  const T* const from = static_cast<const T*>(move.from);
  move_each(n, at, by, scale, [=](int64_t s, int64_t o) { to[s] = from[o]; });
}

void set(const View& self, int64_t dim, const View& index, const View& src) {
  const Lines lines(self, src, index, dim);
  with_width(self.dtype, [&]<class T>(T) { lines.each({set_loop<T>, self.as<T>(), src.as<T>()}); });
}

// One number as a tensor of index's sizes.
struct Repeated {
  template <class T>
  Repeated(T number, const View& index) : strides(index.sizes.size(), 0) {
    std::memcpy(storage, &number, sizeof number);
    view = {storage, kDTypeOf<T>, index.sizes, strides, index.numel, true};
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  alignas(16) char storage[16];
  DimVector strides;
  View view;
};

// A sum by itself: a constant keeps the choice out of the loop.
template <class T, bool sum>
void reduce_loop(const Move& move, int64_t n, Offsets at, Steps by, int64_t scale) {
  const Reduce how = sum ? Reduce::kSum : move.how;
  T* const to = static_cast<T*>(move.to);
  const T* const from = static_cast<const T*>(move.from);
  move_each(n, at, by, scale, [=](int64_t s, int64_t o) { to[s] = combine(how, to[s], from[o]); });
}

void count_loop(const Move& move, int64_t n, Offsets at, Steps by, int64_t scale) {
  int64_t* const counts = static_cast<int64_t*>(move.to);
  move_each(n, at, by, scale, [=](int64_t s, int64_t) { counts[s]++; });
}

// A mean's quotient: integers round down.
template <class T>
void divide(T& x, int64_t divisor) {
  if constexpr (std::is_same_v<T, Bool>) {
    return;
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t v = static_cast<int64_t>(x), q = v / divisor;
    x = static_cast<T>(q - (v % divisor != 0 && v < 0));
  } else if constexpr (is_reduced_floating(kDTypeOf<T>)) {
    x = T(static_cast<float>(x) / static_cast<float>(divisor));
  } else if constexpr (is_complex(kDTypeOf<T>)) {
    x /= static_cast<typename T::value_type>(divisor);
  } else {
    x /= static_cast<T>(divisor);
  }
}

// Whether the elements of a row, of all dimensions but the first, are contiguous.
bool has_dense_rows(const View& v) {
  int64_t step = 1;
  for (int64_t d = v.ndim() - 1; d > 0; step *= v.sizes[d--])
    if (v.sizes[d] != 1 && v.strides[d] != step) return false;
  return true;
}

// Reduces along the first dimension where one index stands for a whole row, if there are vectors
// for it; false where not. Threads share the columns.
template <class T>
bool try_reduce_rows(const View& self, int64_t dim, const View& index, const View& src, Reduce how,
                     bool include_self, bool mean) {
  const CombineRows combine = combine_rows(self.dtype, how);
  if (!combine || dim != 0 || self.ndim() < 2) return false;
  for (int64_t d = 1; d < index.ndim(); d++)
    if (index.sizes[d] != self.sizes[d] || (index.sizes[d] != 1 && index.strides[d] != 0))
      return false;
  if (!has_dense_rows(self) || !has_dense_rows(src)) return false;
  const int64_t rows = index.sizes[0], n = index.numel / rows, size = self.sizes[0];
  for (int64_t d = 1; d < src.ndim(); d++)
    if (src.sizes[d] != self.sizes[d]) return false;
  // Read once, for all threads.
  const Scratch<int64_t> targets(rows), counts(size);
  std::fill_n(counts.data(), size, int64_t{0});
  if (!copy_inside(targets.data(), index.as<int64_t>(), rows, index.strides[0], size))
    fail_outside(index, dim, size);
  for (int64_t r = 0; r < rows; r++) counts[targets[r]]++;
  const auto row = [&](int64_t i) { return self.as<T>() + i * self.strides[0]; };
  const int64_t grain = std::max<int64_t>(64, (int64_t{1} << 16) / rows);
  parallel_for(0, n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < size && !include_self; i++)
      if (counts[i] > 0) std::fill(row(i) + begin, row(i) + end, identity<T>(how));
    Looks looks;
    for (int64_t r = 0; r < rows; r++) {
      combine(row(targets[r]) + begin, src.as<T>() + r * src.strides[0] + begin, end - begin);
      looks.after(end - begin);
    }
    for (int64_t i = 0; i < size && mean; i++)
      if (counts[i] > 0)
        for (T* x = row(i) + begin; x < row(i) + end; x++) divide(*x, counts[i] + include_self);
  });
  return true;
}

template <class T>
void reduce_into(const View& self, int64_t dim, const View& index, const View& src, Reduce how,
                 bool include_self, bool mean) {
  T* to = self.as<T>();
  if (!include_self) set(self, dim, index, Repeated(identity<T>(how), index).view);
  const auto loop = how == Reduce::kSum ? reduce_loop<T, true> : reduce_loop<T, false>;
  Lines(self, src, index, dim).each({loop, to, src.as<T>(), how});
  if (!mean) return;
  // Number of values in each destination, in a row-major tensor beside it.
  const DimVector strides = dense_strides(self.sizes);
  const std::unique_ptr<int64_t[]> counts(new int64_t[static_cast<size_t>(self.numel)]());
  const View counter{counts.get(), DType::kInt64, self.sizes, strides, self.numel, true};
  int64_t* const c = counts.get();
  Lines(counter, src, index, dim).each({count_loop, c});
  int64_t k = 0;
  for_each_offset(self, [&](int64_t s) {
    const int64_t n = c[k++];
    if (n == 0) return;
    divide(to[s], n + include_self);
  });
}

void scatter_any(const View& self, int64_t dim, const View& index, const View& src, Reduce how,
                 bool include_self = true, bool mean = false) {
  check_writable(self);
  if (index.numel == 0) return;
  const IndexView given(index);
  // A source in the destination's memory is read from a copy, and so is an index, which would
  // change after it was checked.
  std::unique_ptr<DenseView> source, indices;
  if (may_overlap(self, src)) source = std::make_unique<DenseView>(src, self);
  if (may_overlap(self, given.view())) indices = std::make_unique<DenseView>(given.view(), self);
  const View &values = source ? source->view() : src,
             &index_view = indices ? indices->view() : given.view();
  if (self.dtype == DType::kFloat32 &&
      try_reduce_rows<float>(self, dim, index_view, values, how, include_self, mean))
    return;
  if (self.dtype == DType::kFloat64 &&
      try_reduce_rows<double>(self, dim, index_view, values, how, include_self, mean))
    return;
  Lines(self, values, index_view, dim).check();  // before anything is written
  if (how == Reduce::kSet) return set(self, dim, index_view, values);
  with_dtype<AllTypes>(self.dtype, [&](auto zero) {
    reduce_into<decltype(zero)>(self, dim, index_view, values, how, include_self, mean);
  });
}

Reduce reduce_named(std::string_view name) {
  if (name == "sum" || name == "mean" || name == "add") return Reduce::kSum;
  if (name == "prod" || name == "multiply") return Reduce::kProd;
  return name == "amin" ? Reduce::kMin : Reduce::kMax;
}

template <class T>
void gather_loop(const Move& move, int64_t n, Offsets at, Steps by, int64_t scale) {
  const T* const from = static_cast<const T*>(move.from);
  T* const to = static_cast<T*>(move.to);
  if (by.other != 1 || by.self != 0 || scale != 1)
    return move_each(n, at, by, scale, [=](int64_t s, int64_t o) { to[o] = from[s]; });
  T block[kChecked];
  T* const target = move.streams ? block : to + at.other;
  for (int64_t i = 0; i < n; i++) target[i] = from[at.self + at.index[i]];
  if (move.streams) stream(to + at.other, block, n * static_cast<int64_t>(sizeof(T)));
}

void scatter_number(const View& self, int64_t dim, const View& index, const Scalar& value,
                    Reduce how) {
  with_dtype<AllTypes>(self.dtype, [&]<class T>(T) {
    scatter_any(self, dim, index, Repeated(value.to<T>(), index).view, how);
  });
}

}  // namespace

void gather(const View& out, const View& self, int64_t dim, const View& index, bool) {
  if (out.numel == 0) return;
  const IndexView index_view(index);
  const Lines lines(self, out, index_view.view(), dim);
  with_width(self.dtype, [&]<class T>(T) {
    const auto bytes = static_cast<int64_t>(sizeof(T)) * (out.numel + self.numel) + 8 * index.numel;
    lines.each({gather_loop<T>, out.as<T>(), self.as<T>(), Reduce::kSet, worth_streaming(bytes)});
  });
}

void scatter_src(const View& self, int64_t dim, const View& index, const View& src) {
  scatter_any(self, dim, index, src, Reduce::kSet);
}
void scatter_value(const View& self, int64_t dim, const View& index, const Scalar& value) {
  scatter_number(self, dim, index, value, Reduce::kSet);
}
void scatter_value_reduce(const View& self, int64_t dim, const View& index, const Scalar& value,
                          std::string_view reduce) {
  scatter_number(self, dim, index, value, reduce_named(reduce));
}
void scatter_add(const View& self, int64_t dim, const View& index, const View& src) {
  scatter_any(self, dim, index, src, Reduce::kSum);
}
void scatter_reduce_src(const View& self, int64_t dim, const View& index, const View& src,
                        std::string_view reduce) {
  scatter_any(self, dim, index, src, reduce_named(reduce));
}
void scatter_reduce(const View& out, const View& self, int64_t dim, const View& index,
                    const View& src, std::string_view reduce, bool include_self) {
  copy_view(out, self);
  scatter_any(out, dim, index, src, reduce_named(reduce), include_self, reduce == "mean");
}

}  // namespace taeda::cpu
