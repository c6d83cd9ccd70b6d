// torch.signal.windows: formulas of the points between a window's ends.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "op/abs.h"
#include "op/add.h"
#include "op/cos.h"
#include "op/div.h"
#include "op/empty.h"
#include "op/exp.h"
#include "op/i0.h"
#include "op/linspace.h"
#include "op/mul.h"
#include "op/neg.h"
#include "op/ones.h"
#include "op/rsub.h"
#include "op/scalar_tensor.h"
#include "op/sin.h"
#include "op/sqrt.h"
#include "op/square.h"

namespace taeda::impl {
namespace {

using std::numbers::pi;

// A window of `points`, symmetric or periodic: then it is the symmetric one of a point more,
// without its last.
struct Window {
  Window(std::string_view name, int64_t points, bool sym, const TensorOptions& options)
      : points(points), options(options) {
    TD_CHECK_VALUE(points >= 0, "{} requires non-negative window length, got M={}", name, points);
    const DType dtype = this->dtype();
    TD_CHECK_VALUE(dtype == DType::kFloat32 || dtype == DType::kFloat64,
                   "{} expects float32 or float64 dtypes, got: torch.{}", name, to_text(dtype));
    steps = static_cast<double>(sym || points <= 1 ? points - 1 : points);
    last = static_cast<double>(points - 1);
  }

  DType dtype() const { return options.dtype.value_or(default_dtype()); }
  Tensor between(double first, double end) const {
    return op::linspace(Scalar(first), Scalar(end), points, options);
  }
  Tensor empty() const { return op::empty({0}, options, std::nullopt); }
  Tensor ones() const { return op::ones({points}, options); }

  int64_t points;
  double steps, last;  // from the first point to the window's end, and to the last point
  TensorOptions options;
};

// The sum of (-1)^i a[i] cos(i k) at the points k from 0 to 2 pi.
Tensor sum_of_cosines(const Window& window, Span<const double> a) {
  if (window.points <= 1) return window.ones();
  TD_CHECK_VALUE(!a.empty(), "Coefficients cannot be empty");
  const Tensor k = window.between(0, window.last * (2 * pi / window.steps));
  // The first summand is of k too, so that a gradient is recorded where it is asked for.
  Tensor total = op::mul(op::cos(op::mul(k, Tensor(0.0))), Tensor(a[0]));
  for (size_t i = 1; i < a.size(); i++) {
    const Tensor wave = op::cos(op::mul(k, Tensor(static_cast<double>(i))));
    total = op::add(total, op::mul(wave, Tensor(i % 2 ? -a[i] : a[i])), Scalar(1));
  }
  return total;
}

}  // namespace

Tensor signal_windows_exponential(int64_t M, OptDouble center, double tau, bool sym,
                                  const TensorOptions& options) {
  const Window window("exponential", M, sym, options);
  if (M == 0) return window.empty();
  const double middle = center.value_or(window.steps / 2), scale = 1 / tau;
  const Tensor k = window.between(-middle * scale, (-middle + window.last) * scale);
  return op::exp(op::neg(op::abs(k)));
}

Tensor signal_windows_cosine(int64_t M, bool sym, const TensorOptions& options) {
  const Window window("cosine", M, sym, options);
  if (M == 0) return window.empty();
  const double scale = pi / (window.steps + 1);
  return op::sin(window.between(0.5 * scale, (0.5 + window.last) * scale));
}

Tensor signal_windows_gaussian(int64_t M, double std, bool sym, const TensorOptions& options) {
  const Window window("gaussian", M, sym, options);
  if (M == 0) return window.empty();
  const double first = -window.steps / 2, scale = 1 / (std * std::numbers::sqrt2);
  const Tensor k = window.between(first * scale, (first + window.last) * scale);
  return op::exp(op::neg(op::square(k)));
}

Tensor signal_windows_kaiser(int64_t M, double beta, bool sym, const TensorOptions& options) {
  const Window window("kaiser", M, sym, options);
  if (M <= 1) return window.ones();
  // In the window's dtype, so that rounding takes no point past the end, where I0 is of NaN.
  const auto rounded = [&](double x) {
    return window.dtype() == DType::kFloat32 ? static_cast<double>(static_cast<float>(x)) : x;
  };
  const double end = rounded(beta);
  const double last =
      std::min(end, rounded(rounded(window.last * (2 * beta / window.steps)) - end));
  const Tensor squares = op::square(window.between(-end, last));
  const Tensor height = op::i0(op::scalar_tensor(Scalar(end), window.dtype()));
  return op::div(op::i0(op::sqrt(op::rsub(squares, Tensor(rounded(end * end)), Scalar(1)))),
                 height);
}

Tensor signal_windows_bartlett(int64_t M, bool sym, const TensorOptions& options) {
  const Window window("bartlett", M, sym, options);
  if (M <= 1) return window.ones();
  const Tensor k = window.between(-1, -1 + window.last * (2 / window.steps));
  return op::rsub(op::abs(k), Tensor(1), Scalar(1));
}

Tensor signal_windows_general_cosine(int64_t M, Span<const double> a, bool sym,
                                     const TensorOptions& options) {
  return sum_of_cosines({"general_cosine", M, sym, options}, a);
}
Tensor signal_windows_general_hamming(int64_t M, double alpha, bool sym,
                                      const TensorOptions& options) {
  const double weights[] = {alpha, 1 - alpha};
  return signal_windows_general_cosine(M, weights, sym, options);
}
Tensor signal_windows_hamming(int64_t M, bool sym, const TensorOptions& options) {
  return signal_windows_general_hamming(M, 0.54, sym, options);
}
Tensor signal_windows_hann(int64_t M, bool sym, const TensorOptions& options) {
  return signal_windows_general_hamming(M, 0.5, sym, options);
}
Tensor signal_windows_blackman(int64_t M, bool sym, const TensorOptions& options) {
  const double weights[] = {0.42, 0.5, 0.08};
  return sum_of_cosines({"blackman", M, sym, options}, weights);
}
Tensor signal_windows_nuttall(int64_t M, bool sym, const TensorOptions& options) {
  const double weights[] = {0.3635819, 0.4891775, 0.1365995, 0.0106411};
  return signal_windows_general_cosine(M, weights, sym, options);
}

}  // namespace taeda::impl
