// Advanced indexing: reading and writing slices at positions given by index tensors.
//
// Positions become memory offsets first, one each, with every index checked before anything is
// written. Then
//   out[b][p][a] = self[b + offset[p] + a]      and back,
// where b runs over the dimensions before the indexed ones and a over those after them. The other
// tensor is dense. Writes keep the order of positions: the last of several wins, and accumulated
// sums are the same in every run.
#include "kernels/cpu/index/indexing.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/sliced.h"
#include "core/with_dtype.h"
#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/simd/prefetch.h"

// Vector code where slices are dense.
#pragma GCC optimize("O3")

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 13;
constexpr int64_t kWidth = 256;  // elements of a run that are worth a task of their own

// The elements of some dimensions of a strided tensor, as runs along the innermost.
struct Block {
  DimVector sizes, strides;  // without the innermost
  int64_t run = 1, step = 1, runs = 1;

  void push(int64_t size, int64_t stride) {
    if (size == 1) return;
    sizes.push_back(size);
    strides.push_back(stride);
  }
  void coalesce() {
    size_t last = 0;
    for (size_t i = 1; i < sizes.size(); i++) {  // join dimensions that follow each other in memory
      if (strides[last] == sizes[i] * strides[i]) {
        sizes[last] *= sizes[i];
        strides[last] = strides[i];
      } else {
        last++;
        sizes[last] = sizes[i];
        strides[last] = strides[i];
      }
    }
    if (!sizes.empty()) {
      sizes.resize(last + 1);
      strides.resize(last + 1);
      run = sizes.back();
      step = strides.back();
      sizes.pop_back();
      strides.pop_back();
    }
    for (int64_t s : sizes) runs *= s;
  }
  int64_t count() const { return run * runs; }
  int64_t offset(int64_t r) const {
    int64_t out = 0;
    for (size_t i = sizes.size(); i-- > 0;) {
      out += r % sizes[i] * strides[i];
      r /= sizes[i];
    }
    return out;
  }
};

struct Layout {
  Block before, after;
  int64_t span = 0;  // elements of the one indexed dimension, if they lie side by side
};
Layout layout_of(const View& self, int64_t first, int64_t count) {
  Layout l;
  for (int64_t d = 0; d < self.ndim(); d++) {
    const size_t i = static_cast<size_t>(d);
    if (d < first)
      l.before.push(self.sizes[i], self.strides[i]);
    else if (d >= first + count)
      l.after.push(self.sizes[i], self.strides[i]);
  }
  l.before.coalesce();
  l.after.coalesce();
  const auto k = static_cast<size_t>(first);
  if (count == 1 && self.ndim() > 0 && self.strides[k] == 1) l.span = self.sizes[k];
  return l;
}

template <class T>
void copy_block(T* to, const T* from, const Block& block) {
  for (int64_t r = 0; r < block.runs; r++) {
    const T* run = from + (block.runs == 1 ? 0 : block.offset(r));
    if (block.step == 1)
      std::memcpy(to, run, static_cast<size_t>(block.run) * sizeof(T));
    else
      for (int64_t k = 0; k < block.run; k++) to[k] = run[k * block.step];
    to += block.run;
  }
}

// to[p] = from[at[p]]. Meanwhile the row of `span` elements at `next`, if any, is prefetched: it
// will be read in any order.
template <class T>
void read_elements(T* to, const T* from, const int64_t* at, int64_t n, const T* next,
                   int64_t span) {
  constexpr int64_t kPart = 256;
  constexpr int64_t kMaxAhead = 32 * 1024 / sizeof(T), kLine = 64 / sizeof(T);
  const bool ahead = next && n >= kPart && span <= kMaxAhead;
  for (int64_t first = 0; first < n; first += kPart) {
    const int64_t last = std::min(n, first + kPart);
    for (int64_t i = span * first / n; ahead && i < span * last / n; i += kLine)
      __builtin_prefetch(next + i);
    for (int64_t p = first; p < last; p++) to[p] = from[at[p]];
  }
}

// to[p][a] = from[at[p] + a]. The beginnings of slices to come are prefetched; the processor
// follows them from there by itself.
template <class T>
void read_slices(T* to, const T* from, const int64_t* at, int64_t count, const Block& slice) {
  constexpr int64_t kAhead = 4, kBeginning = 512;  // slices, bytes
  const int64_t n = slice.count(),
                bytes = std::min(kBeginning, slice.run * static_cast<int64_t>(sizeof(T)));
  for (int64_t p = 0; p < count; p++, to += n) {
    if (slice.step == 1 && p + kAhead < count) prefetch_lines(from + at[p + kAhead], bytes);
    copy_block(to, from + at[p], slice);
  }
}

template <class T>
void read(T* out, const T* self, const Layout& l, Span<const int64_t> offsets) {
  const int64_t positions = static_cast<int64_t>(offsets.size()), n = l.after.count();
  parallel_for(
      0, l.before.count() * positions, std::max<int64_t>(1, kWork / std::max<int64_t>(n, 1)),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end;) {  // one element of `before` at a time
          const int64_t b = i / positions, first = i % positions,
                        count = std::min(positions - first, end - i);
          const auto start = [&](int64_t row) {
            return self + l.before.offset(row / l.before.run) + row % l.before.run * l.before.step;
          };
          const T* base = start(b);
          T* to = out + i * n;
          const int64_t* const at = offsets.data() + first;
          if (n == 1)
            read_elements(to, base, at, count, i + count < end ? start(b + 1) : nullptr, l.span);
          else
            read_slices(to, base, at, count, l.after);
          i += count;
        }
      });
}

template <class T, class F>
void write_line(T* to, int64_t step, const T* from, int64_t n, const F& move) {
  if (step == 1) {
#pragma GCC ivdep
    for (int64_t k = 0; k < n; k++) move(to[k], from[k]);
  } else {
    for (int64_t k = 0; k < n; k++) move(to[k * step], from[k]);
  }
}

constexpr int64_t kLongLine = 2048;  // bytes

// Long lines are written whole, which memory does fastest: a task owns the lines of a range of
// indices, about as many as the others. False where lines are short, few, or cut into runs.
template <class T, class F>
bool write_long_lines(T* self, const T* src, const Layout& l, Span<const int64_t> offsets,
                      const F& move) {
  const int64_t tasks = get_num_threads(), n = l.after.count();
  const size_t positions = offsets.size();
  if (tasks == 1 || l.before.count() > 1 || l.after.runs > 1 || positions < 64 ||
      n * static_cast<int64_t>(sizeof(T)) < kLongLine)
    return false;
  std::vector<int64_t> order(offsets.begin(), offsets.end()),
      bounds{*std::min_element(offsets.begin(), offsets.end())};
  for (int64_t task = 1; task < tasks; task++) {
    const auto at = order.begin() + static_cast<int64_t>(positions) * task / tasks;
    std::nth_element(order.begin(), at, order.end());
    bounds.push_back(*at);
  }
  bounds.push_back(INT64_MAX);
  // One place that many positions share would leave the others idle.
  for (size_t task = 1; task < bounds.size(); task++)
    if (bounds[task] == bounds[task - 1]) return false;
  parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = bounds[static_cast<size_t>(begin)],
                  last = bounds[static_cast<size_t>(end)];
    Looks looks;
    for (size_t p = 0; p < positions; p++) {
      if (offsets[p] < first || offsets[p] >= last) continue;
      write_line(self + offsets[p], l.after.step, src + static_cast<int64_t>(p) * n, n, move);
      looks.after(n);
    }
  });
  return true;
}

// move(destination, source) for every element; tasks own disjoint elements and go through positions
// in order.
template <class T, class F>
void write(T* self, const T* src, const Layout& l, Span<const int64_t> offsets, const F& move) {
  const int64_t positions = static_cast<int64_t>(offsets.size()), n = l.after.count();
  if (positions == 0 || n == 0 || write_long_lines(self, src, l, offsets, move)) return;
  // A task is a part of the runs of one `before` element.
  // Each element takes its values in the order of positions however runs are cut, so there are as
  // few parts as threads: whole runs are read and written fastest.
  const int64_t share = (l.after.run + get_num_threads() - 1) / get_num_threads();
  const int64_t width = std::min(l.after.run, std::max({kWidth, kWork / positions, share}));
  const int64_t parts = (l.after.run + width - 1) / width;
  const int64_t tasks = l.before.count() * l.after.runs * parts;
  parallel_for(
      0, tasks, std::max<int64_t>(1, kWork / (positions * width)), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; t++) {
          const int64_t part = t % parts, r = t / parts % l.after.runs,
                        b = t / (parts * l.after.runs);
          const int64_t first = part * width, m = std::min(width, l.after.run - first);
          T* to = self + l.before.offset(b / l.before.run) + b % l.before.run * l.before.step +
                  l.after.offset(r) + first * l.after.step;
          const T* from = src + b * positions * n + r * l.after.run + first;
          if (n == 1) {  // without a loop of one element each
            in_slices(positions, [&](int64_t p, int64_t last) {
              for (; p < last; p++) move(to[offsets[static_cast<size_t>(p)]], from[p]);
            });
            continue;
          }
          Looks looks;
          for (int64_t p = 0; p < positions; p++) {
            write_line(to + offsets[static_cast<size_t>(p)], l.after.step, from + p * n, m, move);
            looks.after(m);
          }
        }
      });
}

template <class T>
void accumulate(T& a, const T& b) {
  if constexpr (std::is_same_v<T, Bool>)
    a = a || b;
  else if constexpr (is_reduced_floating(kDTypeOf<T>) || is_narrow_floating(kDTypeOf<T>))
    a = T(static_cast<float>(a) + static_cast<float>(b));
  else if constexpr (std::is_same_v<T, ComplexHalf>)
    a = T(static_cast<std::complex<float>>(a) + static_cast<std::complex<float>>(b));
  else if constexpr (std::is_integral_v<T>)
    a = static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    a += b;
}

}  // namespace

void read_offsets(const View& out, const View& self, int64_t first, int64_t count,
                  Span<const int64_t> offsets) {
  if (out.numel == 0) return;
  const Layout l = layout_of(self, first, count);
  with_width(self.dtype, [&](auto zero) {
    using T = decltype(zero);
    read(out.as<T>(), self.as<T>(), l, offsets);
  });
}

void write_offsets(const View& self, const View& values, int64_t first, int64_t count,
                   Span<const int64_t> offsets, bool add) {
  if (values.numel == 0) return;
  const DenseView source(values, self);
  const Layout l = layout_of(self, first, count);
  if (add) {
    using Stored = Types<ComplexHalf, Float8E4M3FN, Float8E5M2, Float8E4M3FNUZ, Float8E5M2FNUZ>;
    with_dtype<Join<AllTypes, Stored>>(self.dtype, "index_put", [&](auto zero) {
      using T = decltype(zero);
      write(self.as<T>(), source.as<T>(), l, offsets, [](T& a, const T& b) { accumulate(a, b); });
    });
  } else {
    with_width(self.dtype, [&](auto zero) {
      using T = decltype(zero);
      write(self.as<T>(), source.as<T>(), l, offsets, [](T& a, const T& b) { a = b; });
    });
  }
}

// offsets[i] += index[i] * stride, negative ones counted from the end if `wrap`; returns whether
// all are inside, which the sign bits say.
static bool add_offsets(int64_t* offsets, const int64_t* index, int64_t n, int64_t size,
                        int64_t stride, bool wrap) {
  const auto count = static_cast<uint64_t>(size), step = static_cast<uint64_t>(stride),
             wrapped = wrap ? count : 0;
  uint64_t outside = 0;
  for (int64_t i = 0; i < n; i++) {
    auto k = static_cast<uint64_t>(index[i]);  // unsigned: any index may stand here
    k += static_cast<uint64_t>(index[i] >> 63) & wrapped;
    outside |= k | (count - 1 - k);
    offsets[i] = static_cast<int64_t>(static_cast<uint64_t>(offsets[i]) + k * step);
  }
  return outside >> 63 == 0;
}

std::vector<int64_t> index_offsets(const View& self, int64_t first, Span<const View> indices,
                                   const char* message, bool wrap, ErrorKind error) {
  std::vector<int64_t> offsets;
  for (size_t k = 0; k < indices.size(); k++) {
    const int64_t dim = first + static_cast<int64_t>(k);
    const int64_t size = self.ndim() ? self.sizes[static_cast<size_t>(dim)] : 1;
    const int64_t stride = self.ndim() ? self.strides[static_cast<size_t>(dim)] : 0;
    const DenseView index(indices[k], DType::kInt64);
    if (offsets.empty()) offsets = sliced_zeros<int64_t>(indices[k].numel);
    const int64_t* const given = index.as<int64_t>();
    std::atomic<bool> inside = true;
    parallel_for(0, indices[k].numel, 1 << 15, [&](int64_t begin, int64_t end) {
      if (!add_offsets(offsets.data() + begin, given + begin, end - begin, size, stride, wrap))
        inside.store(false, std::memory_order_relaxed);
    });
    if (inside) continue;
    for (int64_t i = 0; i < indices[k].numel; i++) {
      const int64_t value = given[i] < 0 && wrap ? given[i] + size : given[i];
      if (value < 0 || value >= size) fail(error, message, given[i], dim, size);
    }
    fail(error, kIndicesChanged);
  }
  return offsets;
}

namespace {

constexpr const char* kSelectMessage =
    "index out of range in self: index {} is out of bounds for dimension {} with size {}";
constexpr const char* kSelectElementMessage =
    "INDICES element is out of DATA bounds: index {} is out of bounds for dimension {} with size "
    "{}";
constexpr const char* kBoundsMessage = "index {} is out of bounds for dimension {} with size {}";

// `src` of an operator along one dimension, as [before][positions][after].
void write_along(const View& self, int64_t dim, const View& index, const View& src,
                 const char* message, bool wrap, bool add, ErrorKind error = ErrorKind::kIndex) {
  const std::vector<int64_t> offsets = index_offsets(self, dim, {&index, 1}, message, wrap, error);
  write_offsets(self, src, dim, 1, offsets, add);
}

}  // namespace

// The kinds of error are PyTorch's.
void index_select(const View& out, const View& self, int64_t dim, const View& index) {
  const int64_t size = self.ndim() ? self.sizes[static_cast<size_t>(dim)] : 1;
  if (self.ndim() > 1 && size == 0 && index.numel > 0)
    fail(ErrorKind::kRuntime,
         "index_select(): self indexing axis dim should be positive, but dimension {} has size 0",
         dim);
  const bool rows = dim == 0 && (self.ndim() < 2 || self.numel > 0);
  const ErrorKind error = rows ? ErrorKind::kIndex : ErrorKind::kRuntime;
  const char* message = rows ? kSelectMessage : kSelectElementMessage;
  read_offsets(out, self, dim, 1,
               index_offsets(self, dim, {&index, 1}, message, /*wrap=*/false, error));
}
void index_add(const View& self, int64_t dim, const View& index, const View& source) {
  TD_CHECK_IMPLEMENTED(!is_narrow_floating(self.dtype), "\"index_add\" not implemented for '{}'",
                       scalar_type_name(self.dtype));
  const bool vector = self.ndim() <= 1 || index.dtype == DType::kInt32;
  check_writable(self);
  write_along(self, dim, index, source, vector ? kSelectMessage : kBoundsMessage, /*wrap=*/false,
              /*add=*/true, vector ? ErrorKind::kIndex : ErrorKind::kRuntime);
}
void index_copy(const View& self, int64_t dim, const View& index, const View& source) {
  check_writable(self);
  write_along(self, dim, index, source,
              "index_copy_(): index {} is out of bounds for dimension {} with size {}",
              /*wrap=*/false, /*add=*/false);
}
namespace {
std::vector<int64_t> offsets_of(const View& self, int64_t first, Span<const View> indices) {
  return index_offsets(self, first, indices,
                       "index {} is out of bounds for dimension {} with size {}", /*wrap=*/true);
}
}  // namespace

void index_read(const View& out, const View& self, int64_t first, Span<const View> indices) {
  read_offsets(out, self, first, static_cast<int64_t>(indices.size()),
               offsets_of(self, first, indices));
}
void index_write(const View& self, const View& values, int64_t first, Span<const View> indices,
                 bool add) {
  write_offsets(self, values, first, static_cast<int64_t>(indices.size()),
                offsets_of(self, first, indices), add);
}

void index_fill(const View& self, int64_t dim, const View& index, const View& value) {
  // The value repeated: strides 0 over [before][positions][after].
  DimVector sizes(self.sizes), strides(self.sizes.size(), 0);
  if (sizes.empty()) {
    sizes.push_back(1);
    strides.push_back(0);
  }
  sizes[static_cast<size_t>(dim)] = index.numel;
  int64_t numel = 1;
  for (int64_t s : sizes) numel *= s;
  write_along(self, dim, index, View{value.data, value.dtype, sizes, strides, numel, true},
              kBoundsMessage,
              /*wrap=*/true, /*add=*/false);
}

namespace {

// Offsets of flat positions (row-major numbering, negative ones counted from the end).
std::vector<int64_t> flat_offsets(const View& self, const View& index) {
  const IndexView checked(index);
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(index.numel));
  for_each_offset(checked.view(), [&](int64_t at) {
    const int64_t given = checked.data()[at];
    int64_t i = given < 0 ? given + self.numel : given, offset = 0;
    TD_CHECK_INDEX(i >= 0 && i < self.numel,
                   "out of range: tried to access index {} on a tensor of {} elements.", given,
                   self.numel);
    for (size_t d = self.sizes.size(); d-- > 0;) {
      offset += i % self.sizes[d] * self.strides[d];
      i /= self.sizes[d];
    }
    offsets.push_back(offset);
  });
  return offsets;
}

}  // namespace

void take(const View& out, const View& self, const View& index) {
  read_offsets(out, self, 0, self.ndim(), flat_offsets(self, index));
}
void put(const View& self, const View& index, const View& source, bool add) {
  check_writable(self);
  write_offsets(self, source, 0, self.ndim(), flat_offsets(self, index), add);
}

void embedding(const View& out, const View& weight, const View& indices, int64_t, bool, bool) {
  read_offsets(out, weight, 0, 1,
               index_offsets(weight, 0, {&indices, 1}, kSelectMessage, /*wrap=*/false));
}

void embedding_backward(const View& gw, const View& gy, const View& indices, int64_t num_weights,
                        int64_t padding_idx, bool scale_grad_by_freq) {
  if (gw.numel) sliced_fill(static_cast<char*>(gw.data), gw.numel * item_size(gw.dtype), char{0});
  std::vector<int64_t> offsets =
      index_offsets(gw, 0, {&indices, 1}, kSelectMessage, /*wrap=*/false);
  if (gw.numel == 0 || gy.numel == 0) return;
  const int64_t width = gw.numel / num_weights, count = static_cast<int64_t>(offsets.size());
  std::vector<int64_t> times(static_cast<size_t>(num_weights));
  in_slices(count, [&](int64_t i, int64_t end) {
    for (; i < end; i++) times[static_cast<size_t>(offsets[static_cast<size_t>(i)] / width)]++;
  });
  const DenseView dense(gy);
  const auto run = [&](auto stored, auto summed) {
    using T = decltype(stored);
    using A = decltype(summed);
    // Rows of half and bfloat16 are added up in float.
    std::unique_ptr<A[]> sums;
    A* total = nullptr;
    if constexpr (std::is_same_v<T, A>) {
      total = gw.as<T>();
    } else {
      sums.reset(new A[static_cast<size_t>(gw.numel)]());
      total = sums.get();
    }
    const T* g = dense.as<T>();
    const int64_t chunk = std::clamp<int64_t>(kWork / count, 16, std::max<int64_t>(16, width));
    parallel_for(0, (width + chunk - 1) / chunk, 1, [&](int64_t begin, int64_t end) {
      Looks looks;
      for (int64_t p = 0; p < count; p++) {
        looks.after((end - begin) * chunk);
        const int64_t o = offsets[static_cast<size_t>(p)], row = o / width;
        if (row == padding_idx) continue;
        const A scale =
            scale_grad_by_freq ? A(1) / static_cast<A>(times[static_cast<size_t>(row)]) : A(1);
        for (int64_t k = begin * chunk; k < std::min(width, end * chunk); k++) {
          total[o + k] += static_cast<A>(g[p * width + k]) * scale;
        }
      }
    });
    if (sums) convert_row(gw.data, gw.dtype, 1, sums.get(), kDTypeOf<A>, 1, gw.numel);
  };
  with_dtype<Floating>(gw.dtype, [&]<class T>(T zero) { run(zero, Wide<T>{}); });
}

}  // namespace taeda::cpu
