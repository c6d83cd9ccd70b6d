// Kernels whose result sizes depend on the data, and searches: called by src/ops.
#pragma once

#include <functional>
#include <vector>

#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/launch.h"

namespace taeda::cpu {

// The elements of a tensor that are not zero, in row-major order. The tensor is read once: what is
// counted is what is listed, whoever writes it meanwhile.
class TrueElements {
 public:
  explicit TrueElements(const View& x);
  int64_t count() const { return starts_.back(); }
  // Their indices as coordinates in a tensor with sizes `sizes`: out is int64 [count, ndim], dense.
  void coordinates(const View& out, IntSpan sizes) const;
  // out[k] = x at the k-th of them; x has the tensor's sizes, out is dense.
  void select(const View& out, const View& x) const;
  // x at the k-th of them = source[k], source in row-major order.
  void scatter(const View& x, const View& source) const;

 private:
  template <class Put>
  void for_each(const Put& put) const;

  Scratch<uint64_t> flags_;      // one bit an element, the first in the lowest
  std::vector<int64_t> starts_;  // how many lie before each block of elements, and in all
};

// Makes the result of a kernel that finds out its size: called once, with the number of elements.
using MakeResult = std::function<View(int64_t)>;
// The coordinates of the elements of x that are not zero: int64 [count, ndim], column-major.
void nonzero(const View& x, const MakeResult& make);
// The elements of x where `mask`, which has its sizes, is true: dense.
void masked_select(const View& x, const View& mask, const MakeResult& make);
// self at the k-th true element of `mask`, which has its sizes, = source[k]; RuntimeError where
// source has fewer.
void masked_scatter(const View& self, const View& mask, const View& source);

// For each row of `values` [rows, n], the index in the matching row of `boundaries` ([rows, m], or
// [1, m] for all) that keeps it sorted; after equal elements if `right`. All dense and of one
// dtype; out int64.
void searchsorted(const View& out, const View& boundaries, const View& values, bool right);

// out[i] = how many of the ascending numbers are not above i. All int64 and dense.
void count_not_above(const View& out, const View& ascending);

// out[i] = whether values[i] is one of `sorted`, or is not if `invert`. All dense, of one dtype.
void is_among(const View& out, const View& values, const View& sorted, bool invert);

// out[x[i]] += 1, or += weights[i]. x int64, dense, in range, or was when out was made; out int64,
// or floating for weights.
void bincount(const View& out, const View& x);
void sum_by_index(const View& out, const View& x, const View& weights);
// The bits that any element of x has. x int64, dense.
uint64_t bits_in_use(const View& x);
// Counts of x in equal bins over [low, high]; all of x's dtype, float or double. On devices out may
// be int64 for x of any dtype; bins are then those of x as float.
void histogram(const View& out, const View& x, double low, double high);

// Starts of the runs of equal rows in a dense [n, width] tensor.
std::vector<int64_t> run_starts(const View& rows, int64_t n, int64_t width);
// The order that sorts the rows of a dense [n, width] tensor lexicographically, to `out`, int64
// [n].
void row_order(const View& out, const View& rows);

}  // namespace taeda::cpu

namespace taeda {
TD_KERNEL(searchsorted);
TD_KERNEL(count_not_above);
TD_KERNEL(is_among);
TD_KERNEL(masked_scatter);
TD_KERNEL(masked_select);
TD_KERNEL(nonzero);
TD_KERNEL(row_order);
TD_KERNEL(histogram);
}  // namespace taeda
