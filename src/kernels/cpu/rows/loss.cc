// cross_entropy over rows of scores and class indices, and binary_cross_entropy.
//
//   loss_i = (1 - s) w_t (lse_i - x_it) + s / c sum_k w_k (lse_i - x_ik),   lse_i = log sum_k exp
//   x_ik, s = label_smoothing gx_ik = g_i [((1 - s) w_t + s / c W) exp(x_ik - lse_i) - (1 - s) w_t
//   [k = t] - s / c w_k],   W = sum_k w_k
//
// The softmax is never stored: the backward pass computes it again from x and lse.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/rows/row_buffer.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/optional.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 14;
constexpr double kNaN =
    std::numeric_limits<double>::quiet_NaN();  // the mean of what weighs nothing

// The class of row i, checked where it is used: another thread may have written it since.
int64_t class_at(const int64_t* target, int64_t i, int64_t classes, int64_t ignore_index) {
  const int64_t k = static_cast<const volatile int64_t*>(target)[i];  // read once
  TD_CHECK_INDEX(k == ignore_index || (k >= 0 && k < classes),
                 "Target {} is out of bounds. A target is the index of one of the input's {} "
                 "classes, from 0 to {}, or ignore_index, {}.",
                 k, classes, classes - 1, ignore_index);
  return k;
}

// The first target outside, in order.
void check_targets(const int64_t* target, int64_t n, int64_t classes, int64_t ignore_index) {
  in_slices(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) class_at(target, i, classes, ignore_index);
  });
}

void store(const View& out, int64_t i, double value) {
  convert_row(at(out, i), out.dtype, 1, &value, DType::kFloat64, 1, 1);
}

template <class T>
void forward(const View& loss, const View& lse, const View& total, const View& input,
             const int64_t* target, const View& weight, int64_t ignore_index,
             std::string_view reduction, double smoothing) {
  const int64_t n = input.sizes[0], c = input.sizes[1];
  const SmallTensor<T> w(weight, c, T(1));
  const RowTable<T>& t = row_table<T>();
  const double weights = t.sum(w.data(), c);
  std::vector<double> losses(static_cast<size_t>(n)), scales(static_cast<size_t>(n));
  parallel_for(
      0, n, std::max<int64_t>(1, kWork / std::max<int64_t>(1, c)), [&](int64_t begin, int64_t end) {
        RowBuffer<T> rows(input, c);
        for (int64_t i = begin; i < end; i++) {
          const T* x = rows.read(i * c, c);
          const T high = t.max(x, c);
          // The maximum is kept apart: beside a large one the logarithm would be lost.
          const double log_sum = std::isfinite(high)
                                     ? std::log(static_cast<double>(t.exp_sum(x, high, c)))
                                     : static_cast<double>(std::numeric_limits<T>::quiet_NaN());
          store(lse, i, high + log_sum);
          const int64_t k = class_at(target, i, c, ignore_index);
          if (k == ignore_index) continue;
          const double wt = w[k];
          double value = (1 - smoothing) * wt * (static_cast<double>(high) - x[k] + log_sum);
          if (smoothing > 0)
            value += smoothing / static_cast<double>(c) *
                     (weights * log_sum - t.dot_centered(x, high, w.data(), c));
          losses[static_cast<size_t>(i)] = value;
          scales[static_cast<size_t>(i)] = wt;
        }
      });
  double sum = 0, scale = 0;
  for (int64_t i = 0; i < n; i++) {
    sum += losses[static_cast<size_t>(i)];
    scale += scales[static_cast<size_t>(i)];
  }
  store(total, 0, scale);
  if (reduction == "none")
    convert_row(loss.data, loss.dtype, 1, losses.data(), DType::kFloat64, 1, n);
  else
    store(loss, 0, reduction != "mean" ? sum : scale == 0 ? kNaN : sum / scale);
}

template <class T>
void gradient(const View& gx, const View& gy, const View& input, const int64_t* target,
              const View& weight, const View& lse, const View& total, int64_t ignore_index,
              std::string_view reduction, double smoothing) {
  const int64_t n = input.sizes[0], c = input.sizes[1];
  const SmallTensor<T> w(weight, c, T(1)), log_sums(lse, n, T(0)), grads(gy, gy.numel, T(0)),
      sum(total, 1, T(0));
  const RowTable<T>& t = row_table<T>();
  const T weights = t.sum(w.data(), c), s = static_cast<T>(smoothing),
          share = s / static_cast<T>(c);
  parallel_for(0, n, std::max<int64_t>(1, kWork / std::max<int64_t>(1, c)),
               [&](int64_t begin, int64_t end) {
                 RowBuffer<T> rows(input, c), outs(gx, c);
                 for (int64_t i = begin; i < end; i++) {
                   T* out = outs.open(i * c);
                   const int64_t k = class_at(target, i, c, ignore_index);
                   if (k == ignore_index) {
                     std::fill_n(out, c, T(0));
                   } else {
                     const T g = reduction == "none"   ? grads[i]
                                 : reduction == "mean" ? grads[0] / sum[0]
                                                       : grads[0];
                     const T picked = (T(1) - s) * w[k];
                     // The sum would be 1, had lse not been rounded.
                     const T row_sum = t.exp_row(out, rows.read(i * c, c), log_sums[i], c);
                     t.affine(out, out, g * (picked + share * weights) / row_sum, T(0), c);
                     if (s > 0) t.add_scaled(out, w.data(), T(0), -g * share, w.data(), c);
                     out[k] -= g * picked;
                   }
                   outs.close(i * c, c);
                 }
               });
}

}  // namespace

void cross_entropy(const View& loss, const View& lse, const View& total, const View& input,
                   const View& target, const View& weight, int64_t ignore_index,
                   std::string_view reduction, double label_smoothing) {
  const int64_t* classes = target.as<int64_t>();
  check_targets(classes, target.numel, input.sizes[1], ignore_index);
  with_wide_floating(input.dtype, [&](auto zero) {
    forward<decltype(zero)>(loss, lse, total, input, classes, weight, ignore_index, reduction,
                            label_smoothing);
  });
}

void cross_entropy_backward(const View& gx, const View& gy, const View& input, const View& target,
                            const View& weight, const View& lse, const View& total,
                            int64_t ignore_index, std::string_view reduction,
                            double label_smoothing) {
  const int64_t* classes = target.as<int64_t>();
  check_targets(classes, target.numel, input.sizes[1], ignore_index);
  with_wide_floating(input.dtype, [&](auto zero) {
    gradient<decltype(zero)>(gx, gy, input, classes, weight, lse, total, ignore_index, reduction,
                             label_smoothing);
  });
}

namespace {

constexpr const char* kNoProbability =
    "all elements of input should be between 0 and 1, but one is {}\nFix: sigmoid the input first, "
    "or leave it and call binary_cross_entropy_with_logits";
constexpr const char* kNoTarget = "all elements of target should be between 0 and 1, but one is {}";

}  // namespace

void binary_cross_entropy(const View& out, const View& input, const View& target) {
  with_wide_floating(input.dtype, [&](auto zero) {
    using T = decltype(zero);
    constexpr int64_t kBlock = 1024;
    parallel_for(0, (out.numel + kBlock - 1) / kBlock, 4, [&](int64_t begin, int64_t end) {
      RowBuffer<T> xs(input, kBlock), ts(target, kBlock), os(out, kBlock);
      for (int64_t b = begin; b < end; b++) {
        const int64_t first = b * kBlock, n = std::min(kBlock, out.numel - first);
        const T *x = xs.read(first, n), *t = ts.read(first, n);
        T* o = os.open(first);
        for (int64_t i = 0; i < n; i++) {
          TD_CHECK(x[i] >= T(0) && x[i] <= T(1), kNoProbability, static_cast<double>(x[i]));
          TD_CHECK(t[i] >= T(0) && t[i] <= T(1), kNoTarget, static_cast<double>(t[i]));
          o[i] = (t[i] - T(1)) * std::max(std::log1p(-x[i]), T(-100)) -
                 t[i] * std::max(std::log(x[i]), T(-100));
        }
        os.close(first, n);
      }
    });
  });
}

}  // namespace taeda::cpu
