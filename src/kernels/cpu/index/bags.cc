// Bags of rows: the scaled sums of the rows of a weight [m, d] that indices [n] name, bag by bag.
// Bag b has the indices starts[b] to starts[b + 1]. All three operators are linear in each of their
// tensors, and each other's gradients.
#include <algorithm>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/sliced.h"
#include "core/with_dtype.h"
#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/rows/row_buffer.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/simd/scratch.h"
#include "taeda/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/index/bags.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// Rows lie anywhere: those that come this much later are prefetched.
constexpr int64_t kAhead = 16;
constexpr int64_t kBetweenLooks = int64_t{1} << 20;  // rows of one bag

// out[c] = sum over i < count of scales[i] * weight[indices[i]][c], kVectors vectors of columns;
// `tail` columns of the last one, if it is not whole. `known` indices may be read ahead.
template <int kVectors, class T>
TD_FN void sum_strip(T* out, const T* weight, int64_t width, const int64_t* indices, int64_t count,
                     int64_t known, const T* scales, int64_t tail = Vec<T>::size()) {
  using V = Vec<T>;
  V sums[kVectors];
#pragma GCC unroll 4  // so that sums stay in registers
  for (V& sum : sums) sum = V(0);
  for (int64_t i = 0; i < count; i++) {
    if (i % kBetweenLooks == kBetweenLooks - 1) check_interrupt();
    if (i + kAhead < known) {
      const T* later = weight + indices[i + kAhead] * width;
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; k++) __builtin_prefetch(later + k * V::size());
    }
    const T* row = weight + indices[i] * width;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; k++) {
      const V x = kVectors == 1 && tail < V::size() ? load_n(row, tail) : load(row + k * V::size());
      sums[k] = scales ? fma(x, V(scales[i]), sums[k]) : sums[k] + x;
    }
  }
  if (kVectors == 1 && tail < V::size()) return store_n(out, sums[0], tail);
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; k++) store(out + k * V::size(), sums[k]);
}

template <class T>
void sum_bag(T* out, const T* weight, int64_t width, const int64_t* indices, int64_t count,
             int64_t known, const T* scales) {
  constexpr int64_t kLanes = Vec<T>::size();
  int64_t c = 0;
  for (; c + 4 * kLanes <= width; c += 4 * kLanes)
    sum_strip<4>(out + c, weight + c, width, indices, count, known, scales);
  for (; c + 2 * kLanes <= width; c += 2 * kLanes)
    sum_strip<2>(out + c, weight + c, width, indices, count, known, scales);
  for (; c + kLanes <= width; c += kLanes)
    sum_strip<1>(out + c, weight + c, width, indices, count, known, scales);
  if (c < width) sum_strip<1>(out + c, weight + c, width, indices, count, known, scales, width - c);
}
void sum_bag_float(float* out, const float* weight, int64_t width, const int64_t* indices,
                   int64_t count, int64_t known, const float* scales) {
  sum_bag(out, weight, width, indices, count, known, scales);
}
void sum_bag_double(double* out, const double* weight, int64_t width, const int64_t* indices,
                    int64_t count, int64_t known, const double* scales) {
  sum_bag(out, weight, width, indices, count, known, scales);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(sum_bag_float);
HWY_EXPORT(sum_bag_double);
namespace {

constexpr int64_t kWork = 1 << 14;  // values worth a task

auto sum_bag_of(float) { return HWY_DYNAMIC_DISPATCH(sum_bag_float); }
auto sum_bag_of(double) { return HWY_DYNAMIC_DISPATCH(sum_bag_double); }

// Copies of what is given, checked: ascending starts within the indices, indices within the weight.
struct Bags {
  const Scratch<int64_t> index_copy, start_copy;
  const int64_t *const indices, *const starts;
  const int64_t count, width;

  Bags(const View& indices_view, const View& starts_view, int64_t rows, int64_t width)
      : index_copy(indices_view.numel),
        start_copy(starts_view.numel),
        indices(index_copy.data()),
        starts(start_copy.data()),
        count(starts_view.numel - 1),
        width(width) {
    std::copy_n(starts_view.as<int64_t>(), starts_view.numel, start_copy.data());
    for (int64_t b = 0; b <= count; b++) {
      TD_CHECK(starts[b] >= (b ? starts[b - 1] : 0) && starts[b] <= indices_view.numel,
               "embedding_bag: offsets must ascend from 0 to at most {}, but offsets[{}] is {}",
               indices_view.numel, b, starts[b]);
    }
    if (copy_if_inside(index_copy.data(), indices_view.as<int64_t>(), indices_view.numel, rows))
      return;
    for (int64_t i = 0; i < indices_view.numel; i++) {
      TD_CHECK(indices[i] >= 0 && indices[i] < rows,
               "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
               "{}",
               indices[i]);
    }
  }
  int64_t grain() const { return std::max<int64_t>(1, kWork / std::max<int64_t>(1, width)); }
};

// to += scale * row
template <class A>
void add_row(A* to, const A* row, A scale, int64_t n) {
  if (scale == 1)
    row_table<A>().add(to, row, n);
  else
    row_table<A>().combine(to, to, row, A(1), scale, A(0), n);
}

template <class T>
Wide<T> scale_at(const View& scales, int64_t i) {
  return scales.present ? static_cast<Wide<T>>(scales.as<T>()[i]) : Wide<T>(1);
}

}  // namespace

void bag_sum(const View& result, const View& weight, const View& indices, const View& starts,
             const View& scales) {
  const Bags bags(indices, starts, weight.sizes[0], weight.sizes[1]);
  with_dtype<Floating>(weight.dtype, [&]<class T>(T) {
    using A = Wide<T>;
    if constexpr (std::is_same_v<T, A>) {
      const auto sum_bag = sum_bag_of(T());
      const T* const scale = scales.present ? scales.as<T>() : nullptr;
      parallel_for(0, bags.count, bags.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; b++) {
          const int64_t first = bags.starts[b];
          sum_bag(result.as<T>() + b * bags.width, weight.as<T>(), bags.width, bags.indices + first,
                  bags.starts[b + 1] - first, indices.numel - first, scale ? scale + first : scale);
        }
      });
      return;
    }
    parallel_for(0, bags.count, bags.grain(), [&](int64_t begin, int64_t end) {
      RowBuffer<A> rows(weight, bags.width), sums(result, bags.width);
      for (int64_t b = begin; b < end; b++) {
        A* const sum = sums.open(b * bags.width);
        std::fill_n(sum, bags.width, A(0));
        for (int64_t i = bags.starts[b]; i < bags.starts[b + 1]; i++)
          add_row(sum, rows.read(bags.indices[i] * bags.width, bags.width), scale_at<T>(scales, i),
                  bags.width);
        sums.close(b * bags.width, bags.width);
      }
    });
  });
}

// gw[indices[i]] += scales[i] * gy[bag of i]. Each task owns some rows of the weight, so that sums
// are added up in the order of the indices.
void bag_sum_backward(const View& gw, const View& gy, const View& indices, const View& starts,
                      const View& scales, int64_t num_weights) {
  const Bags bags(indices, starts, num_weights, gy.sizes[1]);
  const int64_t parts = std::clamp<int64_t>(indices.numel * bags.width / kWork, 1, 16);
  const int64_t length = (num_weights + parts - 1) / parts;
  with_dtype<Floating>(gy.dtype, [&]<class T>(T) {
    using A = Wide<T>;
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * length, last = std::min(num_weights, end * length);
      if (first >= last) return;
      constexpr bool kDirect = std::is_same_v<T, A>;
      const Scratch<A> wide(kDirect ? 0 : (last - first) * bags.width);
      A* sums = wide.data();
      if constexpr (kDirect) sums = gw.as<T>() + first * bags.width;
      std::fill_n(sums, (last - first) * bags.width, A(0));
      RowBuffer<A> rows(gy, bags.width);
      for (int64_t b = 0; b < bags.count; b++) {
        const A* row = nullptr;
        for (int64_t i = bags.starts[b]; i < bags.starts[b + 1]; i++) {
          const int64_t at = bags.indices[i];
          if (at < first || at >= last) continue;
          if (!row) row = rows.read(b * bags.width, bags.width);
          add_row(sums + (at - first) * bags.width, row, scale_at<T>(scales, i), bags.width);
        }
      }
      if constexpr (!kDirect) {
        T* const to = gw.as<T>() + first * bags.width;
        for (int64_t j = 0; j < (last - first) * bags.width; j++) to[j] = T(sums[j]);
      }
    });
  });
}

// result[i] = the dot product of row indices[i] of weight and row (bag of i) of x; 0 for an index
// in no bag.
void bag_dots(const View& result, const View& x, const View& weight, const View& indices,
              const View& starts) {
  const Bags bags(indices, starts, weight.sizes[0], weight.sizes[1]);
  with_dtype<Floating>(weight.dtype, [&]<class T>(T) {
    using A = Wide<T>;
    sliced_fill(result.as<T>(), result.numel, T(0));
    parallel_for(0, bags.count, bags.grain(), [&](int64_t begin, int64_t end) {
      RowBuffer<A> rows(weight, bags.width), gradients(x, bags.width);
      for (int64_t b = begin; b < end; b++) {
        const A* g = gradients.read(b * bags.width, bags.width);
        for (int64_t i = bags.starts[b]; i < bags.starts[b + 1]; i++) {
          const A* row = rows.read(bags.indices[i] * bags.width, bags.width);
          result.as<T>()[i] = T(row_table<A>().dot(g, row, bags.width));
        }
      }
    });
  });
}

}  // namespace taeda::cpu
#endif
