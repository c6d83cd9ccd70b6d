// Bags of rows, for embedding_bag, and the gradients, which are each other's.
//
//   sum:      out[b] = sum over i of bag b of scale[i] weight[index[i]]
//   backward: gw[r]  = sum over the i with index[i] = r of scale[i] gy[bag of i]
//   dots:     out[i] = weight[index[i]] . x[bag of i]
//
// A thread has a column of a bag, or of a piece of a run of equal indices, which are sorted for the
// gradient (runs.cuh): no atomics, in the order of the indices. Long bags are cut where the number
// of an index is a multiple of kBagPiece; a thread has a column of a piece, and a warp adds up
// those of a bag. Each row named is read once; a dot product is a warp's.
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

struct Bag {
  int64_t begin, end;
  TD_FN Bag(const BagsArgs& a, int64_t b)
      : begin(start_of(a, b, 0)), end(start_of(a, b + 1, begin)) {}
  TD_FN bool is_long() const { return end - begin > kLongBag; }
};

// A column of the rows that indices from `begin` to `end` name.
template <class T>
TD_FN T sum_of_rows(const BagsArgs& a, int64_t begin, int64_t end, int64_t column) {
  T sum = T(0);
  for (int64_t i = begin; i < end; i++)
    if (is_row(a, a.indices[i]) && column < a.width)
      sum += scale_of<T>(a, i) * element<T>(a.rows, a, a.indices[i] * a.width + column);
  return sum;
}

// Every index is looked at, whether in a bag or not, and where a weight has no columns, too.
TD_FN void look_at(const BagsArgs& a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) is_row(a, a.indices[i]);
}
template <class T>
TD_FN void bag_sum_kernel(const BagsArgs& a) {
  if (a.bags == 0 && first_index() == 0) {
    start_of(a, 0, 0);
    look_at(a, 0, a.count);
  }
  const int64_t columns = a.width > 0 ? a.width : 1;
  const auto total = static_cast<uint64_t>(a.bags * columns);
  for (uint64_t task = first_index(); task < total; task += index_step()) {
    const auto b = static_cast<int64_t>(task) / columns,
               column = static_cast<int64_t>(task) % columns;
    const Bag bag(a, b);
    if (b == 0 && column == 0) look_at(a, 0, bag.begin);
    if (b + 1 == a.bags && column == 0) look_at(a, bag.end, a.count);
    if (a.partials && bag.is_long()) continue;
    const T sum = sum_of_rows<T>(a, bag.begin, bag.end, column);
    if (a.width > 0) store(a.out + static_cast<int64_t>(task) * a.itemsize, a.type, sum);
  }
}

// The sum of the bag that a piece goes on with, and of the one that begins in it.
template <class T>
TD_FN T* partial_of(const BagsArgs& a, int64_t piece, int64_t column, bool begins) {
  return reinterpret_cast<T*>(a.partials) + 2 * (piece * a.width + column) + begins;
}
TD_FN int64_t pieces_of(const BagsArgs& a) { return (a.count + kBagPiece - 1) / kBagPiece; }

// A long bag begins or ends in a piece, or goes through it: there are at most two.
template <class T>
TD_FN void bag_pieces_kernel(const BagsArgs& a) {
  const auto total = static_cast<uint64_t>(pieces_of(a) * a.width);
  for (uint64_t task = first_index(); task < total; task += index_step()) {
    const auto piece = static_cast<int64_t>(task) / a.width,
               column = static_cast<int64_t>(task) % a.width;
    const int64_t first = piece * kBagPiece;
    const int64_t last = (first + kBagPiece < a.count ? first + kBagPiece : a.count) - 1;
    const int64_t numbers[] = {bag_of(a, first), bag_of(a, last)};
    for (int k = 0; k < 2; k++) {
      if (numbers[k] < 0 || (k == 1 && numbers[1] == numbers[0])) continue;
      const Bag bag(a, numbers[k]);
      if (!bag.is_long()) continue;
      const int64_t begin = bag.begin > first ? bag.begin : first,
                    end = bag.end <= last ? bag.end : last + 1;
      *partial_of<T>(a, piece, column, bag.begin > first) = sum_of_rows<T>(a, begin, end, column);
    }
  }
}

// A warp has a column of a long bag: that of the first piece which the bag goes on with.
template <class T>
TD_FN void bag_join_kernel(const BagsArgs& a) {
  const Group warp{32};
  const auto total = static_cast<uint64_t>((pieces_of(a) - 1) * a.width);
  for (uint64_t task = warp.first(); task < total; task += warp.step()) {
    const auto piece = static_cast<int64_t>(task) / a.width + 1,
               column = static_cast<int64_t>(task) % a.width;
    const int64_t number = bag_of(a, piece * kBagPiece);
    if (number < 0) continue;
    const Bag bag(a, number);
    if (!bag.is_long() || bag.begin < (piece - 1) * kBagPiece || bag.begin >= piece * kBagPiece)
      continue;
    T sum = T(0);
    if (warp.rank() == 0) sum = *partial_of<T>(a, piece - 1, column, bag.begin % kBagPiece != 0);
    for (int64_t k = piece + (warp.rank() + 31) % 32; k * kBagPiece < bag.end; k += 32)
      sum += *partial_of<T>(a, k, column, false);
    sum = warp.reduce(sum, [](const T& x, const T& y) { return x + y; });
    if (warp.rank() == 0) store(a.out + (number * a.width + column) * a.itemsize, a.type, sum);
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
