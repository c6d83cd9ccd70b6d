#include "kernels/cpu/sort/search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/sliced.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pointwise/flags.h"
#include "kernels/cpu/simd/scratch.h"

namespace taeda::cpu {

namespace {

constexpr int64_t kFlagBlock = 1 << 15;

// 64 flags as bits, the first in the lowest.
uint64_t flag_bits(const Bool* flags) {
  constexpr uint64_t kLow = 0x0101010101010101, kHigh = kLow << 7;
  uint64_t bits = 0;
  for (unsigned k = 0; k < 8; k++) {
    uint64_t bytes;
    std::memcpy(&bytes, flags + 8 * k, 8);
    const uint64_t ones = (((bytes & ~kHigh) + ~kHigh) | bytes) >> 7 & kLow;
    bits |= ones * 0x0102040810204080 >> 56 << 8 * k;  // the product gathers the lowest bits
  }
  return bits;
}

// The flags of n elements as bits, and how many are true.
int64_t pack_flags(const Bool* flags, int64_t n, uint64_t* bits) {
  int64_t count = 0, i = 0;
  for (; i + 64 <= n; i += 64, bits++) {
    *bits = flag_bits(flags + i);
    count += std::popcount(*bits);
  }
  if (i == n) return count;
  *bits = 0;
  for (int64_t k = 0; i + k < n; k++) *bits |= uint64_t{flags[i + k]} << k;
  return count + std::popcount(*bits);
}

// put(k, i) for the k-th true flag, `at` <= k < `stop`, at index i, the first of `bits`.
// Where many flags are true no branch depends on them: put() is then called for false ones too,
// with a k that comes again.
template <class Put>
void for_each_true(const uint64_t* bits, int64_t i, int64_t at, int64_t stop, const Put& put) {
  constexpr int kFew = 12;  // of 64
  for (; at < stop; i += 64, bits++) {
    const int count = std::popcount(*bits);
    if (count <= kFew || at + 64 > stop) {
      for (uint64_t rest = *bits; rest; rest &= rest - 1) put(at++, i + std::countr_zero(rest));
    } else {
      for (int64_t k = 0; k < 64; k++) {
        put(at, i + k);
        at += static_cast<int64_t>(*bits >> k & 1);
      }
    }
  }
}

// Replaces the last of each element's coordinates, its index, by all of them; coordinate d of
// element i is at[d * step + i]. Indices ascend, so that most lie in the same innermost row as the
// one before, whose other coordinates they share.
void unravel(int64_t* at, int64_t step, int64_t count, IntSpan sizes) {
  const size_t ndim = sizes.size();
  const auto inner = static_cast<uint64_t>(sizes[ndim - 1]);
  int64_t* const last = at + static_cast<int64_t>(ndim - 1) * step;
  int64_t start = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = last[i];
    if (i > 0 && static_cast<uint64_t>(rest - start) < inner) {
      for (int64_t* of_dim = at; of_dim != last; of_dim += step) of_dim[i] = of_dim[i - 1];
      last[i] = rest - start;
      continue;
    }
    for (size_t d = ndim; d-- > 0;) {
      at[static_cast<int64_t>(d) * step + i] = rest % sizes[d];
      rest /= sizes[d];
      if (d + 1 == ndim) start = rest * sizes[d];
    }
  }
}

}  // namespace

TrueElements::TrueElements(const View& x) : flags_((x.numel + 63) / 64) {
  const DenseView dense(x, DType::kBool);
  const int64_t blocks = (x.numel + kFlagBlock - 1) / kFlagBlock;
  starts_.resize(static_cast<size_t>(blocks) + 1);
  parallel_for(0, blocks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      const int64_t first = b * kFlagBlock;
      starts_[static_cast<size_t>(b) + 1] =
          pack_flags(dense.as<Bool>() + first, std::min(kFlagBlock, x.numel - first),
                     flags_.data() + first / 64);
    }
  });
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
}

template <class Put>
void TrueElements::for_each(const Put& put) const {
  parallel_for(0, static_cast<int64_t>(starts_.size()) - 1, 4, [&](int64_t begin, int64_t end) {
    for_each_true(flags_.data() + begin * kFlagBlock / 64, begin * kFlagBlock,
                  starts_[static_cast<size_t>(begin)], starts_[static_cast<size_t>(end)], put);
  });
}

void TrueElements::coordinates(const View& out, IntSpan sizes) const {
  const auto ndim = static_cast<int64_t>(sizes.size());
  if (ndim == 0) return;
  int64_t* const last = out.as<int64_t>() + (ndim - 1) * count();
  for_each([=](int64_t k, int64_t i) { last[k] = i; });
  if (ndim == 1) return;
  parallel_for(0, count(), 1 << 13, [&](int64_t begin, int64_t end) {
    unravel(out.as<int64_t>() + begin, count(), end - begin, sizes);
  });
}

void TrueElements::select(const View& out, const View& x) const {
  const DenseView dense(x);
  with_width(x.dtype, [&]<class T>(T) {
    T* const to = out.as<T>();
    const T* const from = dense.as<T>();
    for_each([=](int64_t k, int64_t i) { to[k] = from[i]; });
  });
}

void TrueElements::scatter(const View& x, const View& source) const {
  check_writable(x);
  const Scratch<int64_t> positions(count());
  int64_t* const at = positions.data();
  for_each([=](int64_t k, int64_t i) { at[k] = i; });
  const DenseView dense(source, x);
  with_width(x.dtype, [&]<class T>(T) {
    const T* from = dense.as<T>();
    in_slices(count(), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; k++) {
        int64_t p = at[k], offset = 0;
        for (size_t d = x.sizes.size(); d-- > 0;) {
          offset += p % x.sizes[d] * x.strides[d];
          p /= x.sizes[d];
        }
        x.as<T>()[offset] = from[k];
      }
    });
  });
}

namespace {

// For `kTogether` values at once, how many elements of the row, from its start, fulfil a condition
// that those after them do not. No branch depends on data, since a processor cannot guess the ways
// of a search, and it looks up one value's next element while it waits for another's.
constexpr int64_t kTogether = 8;
template <class T, class Condition>
void count_while(const T* row, int64_t n, const T* values, int64_t count, int64_t* out,
                 const Condition& condition) {
  for (int64_t first = 0; first < count; first += kTogether) {
    const int64_t lanes = std::min(kTogether, count - first);
    const T* base[kTogether];
    T value[kTogether];
    for (int64_t k = 0; k < kTogether; k++) {
      base[k] = row;
      value[k] = values[first + std::min(k, lanes - 1)];
    }
    int64_t rest = n;
    for (; rest > 1; rest -= rest / 2) {
      const int64_t half = rest / 2;
      for (int64_t k = 0; k < kTogether; k++)
        base[k] += half * static_cast<int64_t>(condition(base[k][half - 1], value[k]));
    }
    for (int64_t k = 0; k < lanes; k++)
      out[first + k] = base[k] - row + (rest == 1 && condition(*base[k], value[k]));
  }
}

// Whether x comes before y in a sorted tensor, which has NaN above every number.
template <class T>
bool is_before(const T& x, const T& y) {
  if constexpr (is_reduced_floating(kDTypeOf<T>))
    return is_before(static_cast<float>(x), static_cast<float>(y));
  else if constexpr (std::is_floating_point_v<T>)
    return (x < y) | ((y != y) & (x == x));
  else
    return x < y;
}

}  // namespace

void nonzero(const View& x, const MakeResult& make) {
  const TrueElements elements(x);
  elements.coordinates(make(elements.count()), x.sizes);
}
void masked_select(const View& x, const View& mask, const MakeResult& make) {
  const TrueElements elements(mask);
  elements.select(make(elements.count()), x);
}

void masked_scatter(const View& self, const View& mask, const View& source) {
  const TrueElements elements(mask);
  TD_CHECK(elements.count() <= source.numel,
           "Number of elements of source < number of ones in mask");
  elements.scatter(self, source);
}

void searchsorted(const View& out, const View& boundaries, const View& values, bool right) {
  const int64_t n = values.sizes[1], m = boundaries.sizes[1];
  const int64_t step = boundaries.sizes[0] == 1 ? 0 : m;
  int64_t* const to = out.as<int64_t>();
  with_dtype<AllTypes>(values.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!is_complex(kDTypeOf<T>)) {
      const T* const v = values.as<T>();
      const T* const b = boundaries.as<T>();
      parallel_for(0, values.numel, 1 << 10, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end;) {  // one row at a time
          const int64_t row = i / n, count = std::min((row + 1) * n, end) - i;
          if (right) {
            count_while(b + row * step, m, v + i, count, to + i,
                        [](const T& x, const T& y) { return !is_before(y, x); });
          } else {
            count_while(b + row * step, m, v + i, count, to + i,
                        [](const T& x, const T& y) { return is_before(x, y); });
          }
          i += count;
        }
      });
    }
  });
}

void count_not_above(const View& out, const View& ascending) {
  const int64_t* const numbers = ascending.as<int64_t>();
  int64_t count = 0;
  in_slices(out.numel, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      while (count < ascending.numel && numbers[count] <= i) count++;
      out.as<int64_t>()[i] = count;
    }
  });
}

void is_among(const View& out, const View& values, const View& sorted, bool invert) {
  if (values.dtype == DType::kBool) {  // compared as they are, not as bytes other than 0
    const DenseView v(values, DType::kUInt8), s(sorted, DType::kUInt8);
    return is_among(out, v.view(), s.view(), invert);
  }
  constexpr int64_t kBlock = 1 << 10;
  const int64_t m = sorted.numel;
  Bool* const to = out.as<Bool>();
  with_dtype<Numbers>(values.dtype, [&]<class T>(T) {
    const T* const v = values.as<T>();
    const T* const s = sorted.as<T>();
    parallel_for(0, values.numel, kBlock, [&](int64_t begin, int64_t end) {
      int64_t found[kBlock];
      for (int64_t first = begin; first < end; first += kBlock) {
        const int64_t n = std::min(kBlock, end - first);
        count_while(s, m, v + first, n, found,
                    [](const T& x, const T& y) { return is_before(x, y); });
        for (int64_t i = 0; i < n; i++)
          to[first + i] = (found[i] < m && s[found[i]] == v[first + i]) != invert;
      }
    });
  });
}

void sum_by_index(const View& out, const View& x, const View& weights) {
  const int64_t* const at = x.as<int64_t>();
  const auto last = static_cast<uint64_t>(out.numel - 1);
  const DenseView w(weights, out.dtype);
  with_wide_floating(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* const sums = out.as<T>();
    const T* const values = w.as<T>();
    in_slices(x.numel, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        sums[std::min(static_cast<uint64_t>(at[i]), last)] += values[i];  // x may change
    });
  });
}

namespace {

// Whether kGlance elements are each equal to the one before.
constexpr int64_t kGlance = 16;
template <class T>
[[gnu::optimize("O3")]] bool all_repeat(const T* x) {
  bool same = true;
  for (int64_t i = 0; i < kGlance; i++) same &= x[i] == x[i - 1];
  return same;
}

}  // namespace

std::vector<int64_t> run_starts(const View& rows, int64_t n, int64_t width) {
  std::vector<int64_t> starts;
  with_dtype<AllTypes>(rows.dtype, [&]<class T>(T) {
    const T* x = rows.as<T>();
    if (width == 1) {  // no branch depends on data
      const Scratch<int64_t> found(n);
      int64_t* const at = found.data();
      int64_t count = 0;
      in_slices(n, [&](int64_t begin, int64_t stop) {
        for (int64_t i = begin; i < stop;) {
          if (i > 0 && i + kGlance <= stop && all_repeat(x + i)) {
            i += kGlance;
            continue;
          }
          for (const int64_t end = std::min(stop, i + kGlance); i < end; i++) {
            at[count] = i;
            count += i == 0 || !(x[i] == x[i - 1]);
          }
        }
      });
      starts = sliced_copy(at, count);
      return;
    }
    in_slices(n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        bool same = i > 0;
        for (int64_t k = 0; same && k < width; k++)
          same = x[i * width + k] == x[(i - 1) * width + k];
        if (!same) starts.push_back(i);
      }
    });
  });
  return starts;
}

namespace {

// Whether the row at `a` comes before the one at `b`. One function a type; they share the sort.
using RowBefore = bool(const void* rows, int64_t a, int64_t b, int64_t width);
template <class T>
bool row_before(const void* rows, int64_t a, int64_t b, int64_t width) {
  const T* const p = static_cast<const T*>(rows) + a * width;
  const T* const q = static_cast<const T*>(rows) + b * width;
  for (int64_t k = 0; k < width; k++) {
    if (p[k] < q[k]) return true;
    if (q[k] < p[k]) return false;
  }
  return false;
}

}  // namespace

// NaN compares equal to all numbers, so rows with it have no order: what comes out is what
// std::sort makes of such comparisons, in PyTorch as here. Where they contradict each other it may
// look beyond the range: there is the row -1, at which it stops.
void row_order(const View& out, const View& rows) {
  const int64_t n = rows.sizes[0], width = rows.sizes[1];
  std::vector<int64_t> order(static_cast<size_t>(n) + 2, -1);
  const auto first = order.begin() + 1, last = order.end() - 1;
  std::iota(first, last, int64_t{0});
  RowBefore* before = nullptr;
  with_dtype<RealTypes>(rows.dtype, [&]<class T>(T) { before = row_before<T>; });
  int64_t compared = 0;
  std::sort(first, last, [=, &rows, &compared](int64_t a, int64_t b) {
    if (++compared % (1 << 16) == 0) check_interrupt();
    return a >= 0 && b >= 0 && before(rows.data, a, b, width);
  });
  std::copy(first, last, out.as<int64_t>());
}

}  // namespace taeda::cpu
