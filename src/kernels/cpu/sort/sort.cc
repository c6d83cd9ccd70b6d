// sort, topk, kthvalue, median and mode along one dimension.
//
// Elements become unsigned keys whose order is theirs (NaN above everything; all bits inverted for
// descending order), paired with their indices. Pairs are distinct, so every algorithm is stable:
// short lines are sorted by comparison, long ones by radix, one pass a byte, where bytes that all
// keys share cost nothing; long lines of integers by as few passes as their range needs.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/sliced.h"
#include "kernels/cpu/rows/row_io.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/sort/radix.h"
#include "kernels/optional.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 12;
constexpr size_t kRadixFrom = 512;
constexpr int64_t kPackedFrom = 512;
constexpr size_t kSmall = 32;        // a rank among so few is found by branches
constexpr int kMaxRounds = 64;       // a bound for lines made to defeat the choice of pivots
constexpr int64_t kFew = 16;         // up to this many smallest elements are found by insertion
constexpr size_t kAtOnce = 1 << 18;  // so many are not worth a look for an interrupt

// A key and its index in one number, where the key has 32 bits; else side by side.
struct Narrow {
  using Key = uint32_t;
  uint64_t bits;
  static Narrow make(Key key, uint32_t index) { return {static_cast<uint64_t>(key) << 32 | index}; }
  Key key() const { return static_cast<Key>(bits >> 32); }
  int64_t index() const { return static_cast<int64_t>(bits & 0xffffffffu); }
  friend bool operator<(const Narrow& a, const Narrow& b) { return a.bits < b.bits; }
};
struct Wide {
  using Key = uint64_t;
  uint64_t high;
  uint32_t low;
  static Wide make(Key key, uint32_t index) { return {key, index}; }
  Key key() const { return high; }
  int64_t index() const { return low; }
  friend bool operator<(const Wide& a, const Wide& b) {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};

template <class T>
auto key_of(T x) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    using U = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;
    constexpr U kSign = U(1) << (sizeof(U) * 8 - 1);
    if (x != x) return static_cast<U>(~U(0));
    const U u = std::bit_cast<U>(x + T(0));  // -0 sorts as 0
    return static_cast<U>(u & kSign ? ~u : u | kSign);
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63);
  } else {
    return static_cast<uint32_t>(static_cast<int32_t>(x)) ^ (uint32_t{1} << 31);
  }
}
// The integer with this key.
template <class T>
T value_of(std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> key) {
  return static_cast<T>(key ^ (decltype(key){1} << (sizeof(key) * 8 - 1)));
}
// The bits of unsigned numbers as signed ones in the same order, and back.
template <class T>
void flip_high_bits(T* x, int64_t n) {
  if constexpr (std::is_same_v<T, int64_t>)
    for (int64_t i = 0; i < n; i++) x[i] ^= std::numeric_limits<int64_t>::min();
}
template <class T>
using PairOf = std::conditional_t<sizeof(key_of(T())) == 4, Narrow, Wide>;

// Moves pairs by digit(pair), a byte; `count` says how many there are of each.
template <class Pair, class Digit>
void move_by_digit(const Pair* from, Pair* to, int64_t n, std::array<uint32_t, 256>& count,
                   const Digit& digit) {
  uint32_t start = 0;
  for (uint32_t& c : count) start += std::exchange(c, start);
  in_slices(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) to[count[digit(from[i])]++] = from[i];
  });
}

// By key alone where the pairs lie in the order of their indices.
template <class Pair>
void radix_sort(Pair* pairs, size_t n, Pair* scratch, bool ordered_by_index) {
  constexpr size_t kPasses = sizeof(typename Pair::Key), kIndexPasses = sizeof(uint32_t);
  const auto length = static_cast<int64_t>(n);
  Pair *from = pairs, *to = scratch;
  for (size_t pass = 0; pass < kIndexPasses && !ordered_by_index; pass++) {
    const auto digit = [shift = static_cast<unsigned>(8 * pass)](const Pair& p) {
      return static_cast<uint32_t>(p.index()) >> shift & 255;
    };
    std::array<uint32_t, 256> count{};
    in_slices(length, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) count[digit(from[i])]++;
    });
    if (count[digit(from[0])] == n) continue;
    move_by_digit(from, to, length, count, digit);
    std::swap(from, to);
  }
  std::array<std::array<uint32_t, 256>, kPasses> counts{};
  in_slices(length, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      typename Pair::Key key = from[i].key();
      for (size_t pass = 0; pass < kPasses; pass++, key >>= 8) counts[pass][key & 255]++;
    }
  });
  for (size_t pass = 0; pass < kPasses; pass++) {
    const auto digit = [shift = static_cast<unsigned>(8 * pass)](const Pair& p) {
      return p.key() >> shift & 255;
    };
    if (counts[pass][digit(from[0])] == n) continue;
    move_by_digit(from, to, length, counts[pass], digit);
    std::swap(from, to);
  }
  if (from == pairs) return;
  in_slices(length, [&](int64_t begin, int64_t end) {
    std::copy(from + begin, from + end, pairs + begin);
  });
}

// Leaves the k smallest of n pairs in front, in any order: quickselect in place, without a branch
// that depends on data.
template <class Pair>
void select_front(Pair* pairs, size_t n, size_t k) {
  for (int rounds = 0; n > kAtOnce && k < n && rounds < kMaxRounds; rounds++) {
    std::array<Pair, 5> sample;
    for (size_t i = 0; i < 5; i++) sample[i] = pairs[(n - 1) / 4 * i];
    std::nth_element(sample.begin(), sample.begin() + 2, sample.end());
    const Pair pivot = sample[2];  // neither the least nor the most: pairs are distinct
    size_t less = 0;
    in_slices(static_cast<int64_t>(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const Pair p = pairs[i];
        pairs[i] = pairs[less];
        pairs[less] = p;
        less += p < pivot;
      }
    });
    if (k <= less) {
      n = less;
    } else {
      pairs += less;
      n -= less;
      k -= less;
    }
  }
  if (k > 0 && k < n) std::nth_element(pairs, pairs + k - 1, pairs + n);
}

// Elements of one line of a tensor.
template <class T>
struct Line {
  T* data;
  int64_t stride;
  T& operator[](int64_t i) const { return data[i * stride]; }
};

// Sorts a line of integers whose keys span so few bits that key and index fit into one number: less
// memory to move, and passes only over bits that differ. Returns whether they did.
bool sort_packed(Line<const int64_t> x, Line<int64_t> values, Line<int64_t> indices, int64_t n,
                 bool descending) {
  const uint64_t flip = descending ? ~uint64_t{} : 0;
  const auto key = [=](int64_t i) { return key_of(x[i]) ^ flip; };
  uint64_t least = key(0), most = least;
  in_slices(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      least = std::min(least, key(i));
      most = std::max(most, key(i));
    }
  });
  const auto key_bits = static_cast<unsigned>(std::bit_width(most - least));
  const auto index_bits = static_cast<unsigned>(std::bit_width(static_cast<uint64_t>(n - 1)));
  if (key_bits + index_bits > 64) return false;
  const cpu::Scratch<uint64_t> packed(2 * n);
  parallel_for(0, n, kWork, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      packed[i] = (key(i) - least) << index_bits | static_cast<uint64_t>(i);
  });
  touch_pages(packed.data() + n, n * static_cast<int64_t>(sizeof(uint64_t)));
  const uint64_t* const sorted =
      radix_sort_bits(packed.data(), packed.data() + n, n, index_bits, key_bits);
  const uint64_t index_mask = (uint64_t{1} << index_bits) - 1;
  parallel_for(0, n, kWork, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      values[i] = value_of<int64_t>(((sorted[i] >> index_bits) + least) ^ flip);
      indices[i] = static_cast<int64_t>(sorted[i] & index_mask);
    }
  });
  return true;
}

// Lines of several tensors along `dim` (tensors may differ in size there).
template <size_t N>
class Lines {
 public:
  Lines(const View* const (&views)[N], int64_t dim) {
    const View& x = *views[0];
    for (int64_t d = 0; d < x.ndim(); d++) {
      const size_t i = static_cast<size_t>(d);
      for (size_t v = 0; v < N; v++) {
        if (d == dim)
          stride[v] = views[v]->strides[i];
        else
          strides_[v].push_back(views[v]->strides[i]);
      }
      if (d == dim) continue;
      sizes_.push_back(x.sizes[i]);
      count_ *= x.sizes[i];
    }
  }
  // f(offsets, scratch) for every line, in parallel; make() gives each task its scratch.
  template <class Make, class F>
  void each(int64_t length, const Make& make, const F& f) const {
    parallel_for(0, count_, std::max<int64_t>(1, kWork / std::max<int64_t>(1, length)),
                 [&](int64_t begin, int64_t end) {
                   auto scratch = make();
                   DimVector index(sizes_.size(), 0);
                   std::array<int64_t, N> offset{};
                   int64_t rest = begin;
                   for (size_t i = sizes_.size(); i-- > 0;) {
                     index[i] = rest % sizes_[i];
                     for (size_t v = 0; v < N; v++) offset[v] += index[i] * strides_[v][i];
                     rest /= sizes_[i];
                   }
                   for (int64_t l = begin; l < end; l++) {
                     f(offset, scratch);
                     for (size_t i = sizes_.size(); i-- > 0;) {
                       const int64_t step = ++index[i] < sizes_[i] ? 1 : 1 - sizes_[i];
                       for (size_t v = 0; v < N; v++) offset[v] += step * strides_[v][i];
                       if (step == 1) break;
                       index[i] = 0;
                     }
                   }
                 });
  }
  int64_t stride[N] = {};

 private:
  DimVector sizes_, strides_[N];
  int64_t count_ = 1;
};

// Whether none of kGlance neighbours may come before `last` in the order: NaN always may, since it
// has a place of its own.
constexpr size_t kGlance = 32;
template <class T>
[[gnu::optimize("O3")]] bool none_before(const T* x, T last, bool descending) {
  using Flag = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;  // as wide: vectors of both
  Flag found = 0;
  if (descending) {
    for (size_t i = 0; i < kGlance; i++) found |= -static_cast<Flag>(!(x[i] <= last));
  } else {
    for (size_t i = 0; i < kGlance; i++) found |= -static_cast<Flag>(!(x[i] >= last));
  }
  return found == 0;
}

template <class T>
struct Work {
  explicit Work(int64_t n) : n_(n), memory_(n), pairs(memory_.data()) {}
  // Points `values` at the line, or at a dense copy of it as T.
  void read(const View& x, int64_t offset, int64_t stride) {
    if (x.dtype == kDTypeOf<T> && stride == 1) {
      values = x.as<T>() + offset;
      return;
    }
    if (!dense_.data()) dense_ = Scratch<T>(n_);
    in_slices(n_, [&](int64_t begin, int64_t end) {
      convert_row(dense_.data() + begin, kDTypeOf<T>, 1, at(x, offset + begin * stride), x.dtype,
                  stride, end - begin);
      if (x.dtype == DType::kUInt64) flip_high_bits(dense_.data() + begin, end - begin);
    });
    values = dense_.data();
  }
  Span<const T> line() const { return {values, static_cast<size_t>(n_)}; }
  void load(const View& x, int64_t offset, int64_t stride, bool descending) {
    read(x, offset, stride);
    in_slices(n_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const auto key = key_of(values[i]);
        pairs[i] = PairOf<T>::make(descending ? static_cast<decltype(key)>(~key) : key,
                                   static_cast<uint32_t>(i));
      }
    });
  }
  // Leaves the k smallest pairs in front, in any order. Few of many: only elements below the k-th
  // smallest so far are kept, so most cost one comparison.
  void select_smallest(const View& x, int64_t offset, int64_t stride, bool descending, int64_t k) {
    using Pair = PairOf<T>;
    read(x, offset, stride);
    const int64_t capacity = std::max<int64_t>(4 * k, 256);
    int64_t count = 0;
    Pair worst = Pair::make(static_cast<typename Pair::Key>(~typename Pair::Key{}), ~uint32_t{});
    in_slices(n_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const auto key = key_of(values[i]);
        const Pair pair = Pair::make(descending ? static_cast<decltype(key)>(~key) : key,
                                     static_cast<uint32_t>(i));
        if (!(pair < worst)) continue;
        pairs[count++] = pair;
        if (count == capacity) {
          keep_smallest(count, k);
          count = k;
          worst = *std::max_element(pairs, pairs + k);
        }
      }
    });
    keep_smallest(count, k);
  }
  // Leaves the k smallest of the first `count` pairs in front, in any order.
  void keep_smallest(int64_t count, int64_t k) {
    select_front(pairs, static_cast<size_t>(count), static_cast<size_t>(k));
  }
  // Leaves the k smallest pairs in front, in order: each new one sinks to its place from the end.
  void insert_smallest(const View& x, int64_t offset, int64_t stride, bool descending, size_t k) {
    using Pair = PairOf<T>;
    read(x, offset, stride);
    Pair* const best = pairs;
    const auto flip = descending ? ~typename Pair::Key{} : typename Pair::Key{};
    const auto pair = [&](size_t i) {
      return Pair::make(static_cast<typename Pair::Key>(key_of(values[i]) ^ flip),
                        static_cast<uint32_t>(i));
    };
    const auto sink = [=](Pair p, size_t j) {
      for (; j > 0 && p < best[j - 1]; j--) best[j] = best[j - 1];
      best[j] = p;
    };
    for (size_t i = 0; i < k; i++) sink(pair(i), i);
    in_slices(n_, [&](int64_t begin, int64_t stop) {
      const auto n = static_cast<size_t>(stop);
      for (size_t i = std::max(k, static_cast<size_t>(begin)); i < n;) {
        // Most elements come after the k-th so far: they are passed over many at a time.
        const T worst = values[best[k - 1].index()];
        while (i + kGlance <= n && none_before(values + i, worst, descending)) i += kGlance;
        for (const size_t end = std::min(n, i + kGlance); i < end; i++) {
          const Pair p = pair(i);
          if (p < best[k - 1]) sink(p, k - 1);
        }
      }
    });
  }
  // The pair of rank r; the order of the others is lost. Quickselect without a branch that depends
  // on data: each pair is written to both ends of what is left, and one end moves on.
  PairOf<T> at_rank(size_t r) {
    using Pair = PairOf<T>;
    Pair *from = pairs, *to = other();
    auto n = static_cast<size_t>(n_);
    for (int rounds = 0; n > kSmall && rounds < kMaxRounds; rounds++) {
      std::array<Pair, 5> sample;
      for (size_t k = 0; k < 5; k++) sample[k] = from[(n - 1) / 4 * k];
      std::nth_element(sample.begin(), sample.begin() + 2, sample.end());
      const Pair pivot = sample[2];  // neither the least nor the most: pairs are distinct
      size_t less = 0, more = n;
      in_slices(static_cast<int64_t>(n), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          const Pair p = from[i];
          const bool before = p < pivot;
          to[less] = to[more - 1] = p;
          less += before;
          more -= !before;
        }
      });
      std::swap(from, to);
      if (r < less) {
        n = less;
      } else {
        from += less;
        to += less;
        r -= less;
        n -= less;
      }
    }
    std::nth_element(from, from + r, from + n);
    return from[r];
  }
  void sort() { sort_front(n_, true); }
  // Sorts the first `count` pairs.
  void sort_front(int64_t count, bool ordered_by_index) {
    const auto n = static_cast<size_t>(count);
    if (n < kRadixFrom)
      std::sort(pairs, pairs + n);
    else
      radix_sort(pairs, n, other(), ordered_by_index);
  }
  // The first `count` pairs as values and indices.
  void store(const View& out, const View& indices, int64_t offset, int64_t stride,
             int64_t index_offset, int64_t index_stride, int64_t count, bool descending) {
    const bool direct = out.dtype == kDTypeOf<T>;
    if (!direct && !sorted_.data()) sorted_ = Scratch<T>(n_);
    T* const to = direct ? out.as<T>() + offset : sorted_.data();
    const int64_t step = direct ? stride : 1;
    int64_t* const p = indices.as<int64_t>() + index_offset;
    in_slices(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const auto& pair = pairs[i];
        p[i * index_stride] = pair.index();
        if constexpr (std::is_integral_v<T>) {  // the key is as good, and at hand
          const auto key = pair.key();
          to[i * step] = value_of<T>(descending ? static_cast<decltype(key)>(~key) : key);
        } else {
          to[i * step] = values[pair.index()];
        }
      }
    });
    if (direct) return;
    in_slices(count, [&](int64_t begin, int64_t end) {
      if (out.dtype == DType::kUInt64) flip_high_bits(sorted_.data() + begin, end - begin);
      convert_row(at(out, offset + begin * stride), out.dtype, stride, sorted_.data() + begin,
                  kDTypeOf<T>, 1, end - begin);
    });
  }

 private:
  PairOf<T>* other() {
    if (!other_.data()) {
      other_ = Scratch<PairOf<T>>(n_);
      touch_pages(other_.data(), n_ * static_cast<int64_t>(sizeof(PairOf<T>)));
    }
    return other_.data();
  }

  const int64_t n_;
  const Scratch<PairOf<T>> memory_;
  Scratch<PairOf<T>> other_{0};
  Scratch<T> dense_{0}, sorted_{0};

 public:
  PairOf<T>* const pairs;
  const T* values = nullptr;  // the line, once it is read
};

// The types that values are compared in; half and bfloat16 as float, small integers and bool as
// int32.
template <class F>
void with_key_type(DType t, const F& f) {
  switch (t) {
    case DType::kFloat64:
      return f(double{});
    case DType::kInt64:
    case DType::kUInt32:
    case DType::kUInt64:
      return f(int64_t{});
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
      return f(float{});
    default:
      return f(int32_t{});
  }
}

int64_t size_along(const View& x, int64_t dim) {
  return x.ndim() ? x.sizes[static_cast<size_t>(dim)] : 1;
}

}  // namespace

void sort(const View& values, const View& indices, const View& self, int64_t dim, bool descending) {
  const int64_t n = size_along(self, dim);
  if (self.numel == 0) return;
  const Lines<3> lines({&self, &values, &indices}, dim);
  with_key_type(self.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = std::optional<Work<T>>;
    lines.each(
        n, [] { return S(); },
        [&](const auto& offset, S& s) {
          if constexpr (std::is_same_v<T, int64_t>) {
            if (n >= kPackedFrom && self.dtype == DType::kInt64 &&
                sort_packed({self.as<T>() + offset[0], lines.stride[0]},
                            {values.as<T>() + offset[1], lines.stride[1]},
                            {indices.as<int64_t>() + offset[2], lines.stride[2]}, n, descending))
              return;
          }
          if (!s) s.emplace(n);
          s->load(self, offset[0], lines.stride[0], descending);
          s->sort();
          s->store(values, indices, offset[1], lines.stride[1], offset[2], lines.stride[2], n,
                   descending);
        });
  });
}

void topk(const View& values, const View& indices, const View& self, int64_t k, int64_t dim,
          bool largest, bool sorted) {
  const int64_t n = size_along(self, dim);
  if (values.numel == 0) return;
  const Lines<3> lines({&self, &values, &indices}, dim);
  with_key_type(self.dtype, [&](auto zero) {
    using S = Work<decltype(zero)>;
    lines.each(
        n, [&] { return S(n); },
        [&](const auto& offset, S& s) {
          if (k > 0 && k <= kFew && 2 * k <= n) {
            s.insert_smallest(self, offset[0], lines.stride[0], largest, static_cast<size_t>(k));
          } else if (k > 0 && 16 * k <= n) {
            s.select_smallest(self, offset[0], lines.stride[0], largest, k);
            if (sorted) s.sort_front(k, false);
          } else if (s.load(self, offset[0], lines.stride[0], largest); 4 * k >= n && sorted) {
            s.sort();
          } else {
            s.keep_smallest(n, k);
            if (sorted) s.sort_front(k, false);
          }
          s.store(values, indices, offset[1], lines.stride[1], offset[2], lines.stride[2], k,
                  largest);
        });
  });
}

namespace {

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(x);
  else
    return false;
}

// One element of each line, the `rank(values)`-th smallest; -1 means the first NaN.
template <class Rank>
void select(const View& values, const View& indices, const View& self, int64_t dim,
            const Rank& rank) {
  const int64_t n = size_along(self, dim);
  if (values.numel == 0) return;
  // The results may lack `dim`: give them a stride of 0 there.
  const auto with_dim = [&](const View& v, DimVector& sizes, DimVector& strides) {
    sizes = DimVector(v.sizes);
    strides = DimVector(v.strides);
    if (v.ndim() < self.ndim()) {
      sizes.insert(static_cast<size_t>(dim), 1);
      strides.insert(static_cast<size_t>(dim), 0);
    }
    return View{v.data, v.dtype, sizes, strides, v.numel, true};
  };
  DimVector vs, vt, is, it;
  const View v = with_dim(values, vs, vt), w = with_dim(indices, is, it);
  const Lines<3> lines({&self, &v, &w}, dim);
  with_key_type(self.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Work<T>;
    lines.each(
        n, [&] { return S(n); },
        [&](const auto& offset, S& s) {
          s.load(self, offset[0], lines.stride[0], false);
          const int64_t r = rank(s.line());
          if (r < 0) {
            const auto line = s.line();
            // The last element if the NaN is gone: another thread may write the line.
            const auto nan = std::find_if(line.begin(), line.end() - 1, is_nan<T>);
            s.pairs[0] = PairOf<T>::make(0, static_cast<uint32_t>(nan - line.begin()));
          } else {
            s.pairs[0] = s.at_rank(static_cast<size_t>(r));
          }
          s.store(v, w, offset[1], 1, offset[2], 1, 1, /*descending=*/false);
        });
  });
}

template <class T>
int64_t count_nan(Span<const T> x) {
  int64_t count = 0;
  in_slices(static_cast<int64_t>(x.size()), [&](int64_t begin, int64_t end) {
    count += std::count_if(x.begin() + begin, x.begin() + end, is_nan<T>);
  });
  return count;
}

}  // namespace

void kthvalue(const View& values, const View& indices, const View& self, int64_t k, int64_t dim,
              bool) {
  select(values, indices, self, dim, [k](const auto&) { return k - 1; });
}
// The lower of the two middle elements; the first NaN where there is one.
void median_dim(const View& values, const View& indices, const View& self, int64_t dim, bool) {
  select(values, indices, self, dim, [](const auto& x) {
    return count_nan(x) ? int64_t{-1} : (static_cast<int64_t>(x.size()) - 1) / 2;
  });
}
void nanmedian_dim(const View& values, const View& indices, const View& self, int64_t dim, bool) {
  select(values, indices, self, dim, [](const auto& x) {
    const int64_t numbers = static_cast<int64_t>(x.size()) - count_nan(x);
    return numbers ? (numbers - 1) / 2 : int64_t{-1};
  });
}

// The smallest of the most frequent values, and the index of its last occurrence in the order in
// which std::sort leaves equal ones: PyTorch's index.
void mode(const View& values, const View& indices, const View& self, int64_t dim, bool) {
  const int64_t n = size_along(self, dim);
  if (values.numel == 0) return;
  DimVector vs(values.sizes), vt(values.strides), is(indices.sizes), it(indices.strides);
  if (values.ndim() < self.ndim()) {
    const size_t d = static_cast<size_t>(dim);
    vs.insert(d, 1);
    vt.insert(d, 0);
    is.insert(d, 1);
    it.insert(d, 0);
  }
  const View v{values.data, values.dtype, vs, vt, values.numel, true};
  const View w{indices.data, indices.dtype, is, it, indices.numel, true};
  const Lines<3> lines({&self, &v, &w}, dim);
  with_key_type(self.dtype, [&](auto zero) {
    using S = Work<decltype(zero)>;
    lines.each(
        n, [&] { return S(n); },
        [&](const auto& offset, S& s) {
          s.load(self, offset[0], lines.stride[0], false);
          std::sort(s.pairs, s.pairs + n,
                    [](const auto& a, const auto& b) { return a.key() < b.key(); });
          int64_t best = 0, best_length = 0, start = 0;
          in_slices(n, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
              if (s.pairs[i].key() != s.pairs[start].key()) start = i;
              if (i - start + 1 > best_length) {
                best_length = i - start + 1;
                best = i;
              }
            }
          });
          s.pairs[0] = s.pairs[best];
          s.store(v, w, offset[1], 1, offset[2], 1, 1, /*descending=*/false);
        });
  });
}

}  // namespace taeda::cpu
