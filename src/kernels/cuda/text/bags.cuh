// Bags of rows, for embedding_bag, and the gradients, which are each other's.
//
//   sum:      out[b] = sum over i of bag b of scale[i] weight[index[i]]
//   backward: gw[r]  = sum over the i with index[i] = r of scale[i] gy[bag of i]
//   dots:     out[i] = weight[index[i]] . x[bag of i]
//
// A thread has a column of a bag, or of a piece of a run of equal indices, which are sorted for the
// gradient (runs.cuh): no atomics, in the order of the indices. Each row named is read once; a dot
// product is a warp's.
#pragma once
#include "kernels/cuda/text/bags_args.h"
#include "kernels/cuda/text/runs.cuh"

namespace taeda::device {

// Whether index i, which is in some bag, is one of the weight's rows.
TD_FN bool is_row(const BagsArgs& a, int64_t row) {
  if (row >= 0 && row < a.weights) return true;
  report(a.message, row, a.weights);
  return false;
}
// Where bag b begins or ends, which starts do in ascending order.
TD_FN int64_t start_of(const BagsArgs& a, int64_t b, int64_t least) {
  const int64_t start = a.starts[b];
  if (start >= least && start <= a.count) return start;
  BoundsMessage message = a.starts_message;
  message.dim = b;
  report(message, a.count, start);
  return least;
}
// -1 for an index in no bag.
TD_FN int64_t bag_of(const BagsArgs& a, int64_t i) {
  int64_t begin = 0, end = a.bags + 1;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (a.starts[middle] <= i)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin <= a.bags ? begin - 1 : -1;
}

template <class T>
TD_FN T element(const char* p, const BagsArgs& a, int64_t i) {
  return load<T>(p + i * a.itemsize, a.type);
}
template <class T>
TD_FN T scale_of(const BagsArgs& a, int64_t i) {
  return a.scales ? element<T>(a.scales, a, i) : T(1);
}

template <class T>
TD_FN void bag_sum_kernel(const BagsArgs& a) {
  const auto total = static_cast<uint64_t>(a.bags * a.width);
  for (uint64_t task = first_index(); task < total; task += index_step()) {
    const auto b = static_cast<int64_t>(task) / a.width,
               column = static_cast<int64_t>(task) % a.width;
    const int64_t begin = start_of(a, b, 0), end = start_of(a, b + 1, begin);
    T sum = T(0);
    for (int64_t i = begin; i < end; i++)
      if (is_row(a, a.indices[i]))
        sum += scale_of<T>(a, i) * element<T>(a.rows, a, a.indices[i] * a.width + column);
    store(a.out + static_cast<int64_t>(task) * a.itemsize, a.type, sum);
  }
}

// A column of the gradient.
template <class T>
class BagColumn {
 public:
  TD_FN BagColumn(const BagsArgs& a, uint64_t column)
      : a_(a), column_(static_cast<int64_t>(column)) {}
  TD_FN char* to(uint64_t key) const {
    return a_.out + (static_cast<int64_t>(key) + column_ * a_.itemsize);
  }
  TD_FN T value(int64_t i) const {
    const int64_t bag = bag_of(a_, i);
    if (bag < 0) return T(0);
    return scale_of<T>(a_, i) * element<T>(a_.rows, a_, bag * a_.width + column_);
  }

 private:
  const BagsArgs& a_;
  int64_t column_;
};

template <class T>
TD_FN void bag_dots_kernel(const BagsArgs& a) {
  const Group warp{32};
  for (uint64_t task = warp.first(); task < static_cast<uint64_t>(a.count); task += warp.step()) {
    const auto i = static_cast<int64_t>(task);
    const int64_t bag = bag_of(a, i), row = a.indices[i];
    T sum = T(0);
    if (bag >= 0 && is_row(a, row))
      for (int64_t k = warp.rank(); k < a.width; k += 32)
        sum += element<T>(a.rows, a, row * a.width + k) * element<T>(a.other, a, bag * a.width + k);
    sum = warp.reduce(sum, [](const T& x, const T& y) { return x + y; });
    if (warp.rank() == 0) store(a.out + i * a.itemsize, a.type, sum);
  }
}

}  // namespace taeda::device
