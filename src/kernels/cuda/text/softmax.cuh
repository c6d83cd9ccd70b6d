// softmax and log_softmax along one dimension, and their gradients. Rows are read twice, the second
// time from a cache where they are not too long.
//
//   softmax(x)_i = exp(x_i - max x) / sum_j exp(x_j - max x)         gx = y (gy - sum(gy y))
//   log_softmax(x)_i = x_i - max x - log sum_j exp(x_j - max x)      gx = gy - exp(y) sum(gy)
#pragma once
#include "kernels/cuda/text/reducers.cuh"
#include "kernels/cuda/text/rows.cuh"

namespace taeda::device {

template <class T, bool kLog>
TD_FN void softmax_kernel(const RowArgs& args) {
  using Online = LogSumExp<T>;
  for_each_row(args, [](const Row& row) {
    typename Online::State state = Online::identity();
    row.each([&](uint64_t i) { Online::take(state, row.get<T>(1, i), 0, 0); });
    state = row.group.reduce(state, Online::combine);
    // With a NaN, or inf - inf, every element is NaN.
    const T sum = std::isfinite(state.high) ? state.sum : std::numeric_limits<T>::quiet_NaN();
    const T scale = kLog ? std::log(sum) : T(1) / sum;
    row.each([&](uint64_t i) {
      const T x = row.get<T>(1, i) - state.high;
      row.set(i, kLog ? x - scale : std::exp(x) * scale);
    });
  });
}

// Operand 1 is gy, 2 is y.
template <class T, bool kLog>
TD_FN void softmax_backward_kernel(const RowArgs& args) {
  using Total = Sum<T>;
  for_each_row(args, [](const Row& row) {
    typename Total::State state = Total::identity();
    row.each([&](uint64_t i) {
      const T gy = row.get<T>(1, i);
      Total::take(state, kLog ? gy : gy * row.get<T>(2, i), 0, 0);
    });
    const T sum = static_cast<T>(row.group.reduce(state, Total::combine).total());
    row.each([&](uint64_t i) {
      const T gy = row.get<T>(1, i), y = row.get<T>(2, i);
      row.set(i, kLog ? gy - std::exp(y) * sum : y * (gy - sum));
    });
  });
}

}  // namespace taeda::device
