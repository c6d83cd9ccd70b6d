// grid_sampler as a sum of taps, made of operators that can be differentiated any number of times:
// the definition beside the kernels (kernels/cpu/image), from which second derivatives and forward
// mode follow.
//
// A position along one dimension of the image reads one tap (nearest), two (linear) or four (cubic,
// Keys 1981, a = -0.75): an index, its weight and the weight's derivative in the position.
#include <algorithm>
#include <vector>

#include "core/layout.h"
#include "op/add.h"
#include "op/bitwise_and.h"
#include "op/clamp.h"
#include "op/detach.h"
#include "op/div.h"
#include "op/expand.h"
#include "op/floor.h"
#include "op/fmod.h"
#include "op/full_like.h"
#include "op/gather.h"
#include "op/ge.h"
#include "op/gt.h"
#include "op/lt.h"
#include "op/mul.h"
#include "op/new_zeros.h"
#include "op/reshape.h"
#include "op/round.h"
#include "op/scatter_add.h"
#include "op/select.h"
#include "op/stack.h"
#include "op/sub.h"
#include "op/sum.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "op/where.h"
#include "op/zeros_like.h"
#include "ops/dispatch.h"

namespace taeda::impl {

namespace {

enum Interpolation { kLinear, kNearest, kCubic };
enum Padding { kZeros, kBorder, kReflection };

Tensor plus(const Tensor& x, const Tensor& y) { return op::add(x, y, Scalar(1)); }
Tensor minus(const Tensor& x, const Tensor& y) { return op::sub(x, y, Scalar(1)); }
Tensor plus(const Tensor& x, double y) { return plus(x, Tensor(y)); }
Tensor times(const Tensor& x, double y) { return op::mul(x, Tensor(y)); }
Tensor of_dtype(const Tensor& x, DType dtype) { return op::to_dtype(x, dtype, false, {}); }
Tensor ones_like(const Tensor& x) { return op::full_like(x, Scalar(1), {}, {}); }

struct Tap {
  Tensor index, weight, slope;
};

// Positions and their derivative in the grid, as a factor that is constant almost everywhere.
struct Position {
  Tensor x, factor;
};

// The value `to` with the derivative factor * dx.
Tensor moved(const Tensor& x, const Tensor& to, const Tensor& factor) {
  const Tensor linear = op::mul(factor, x);
  return plus(linear, op::detach(minus(to, linear)));
}

// One dimension of the image: how positions outside of it are brought back.
class Line {
 public:
  Line(int64_t size, Padding padding, bool align_corners)
      : size_(static_cast<double>(size)), padding_(padding), align_(align_corners) {}

  double scale() const { return (align_ ? size_ - 1 : size_) / 2; }
  Tensor position(const Tensor& grid) const {
    return align_ ? times(plus(grid, 1), scale()) : plus(times(plus(grid, 1), scale()), -0.5);
  }

  Position bordered(const Tensor& x) const {
    const Tensor plain = op::detach(x);
    Position at{plain, ones_like(plain)};
    if (padding_ == kReflection) at = reflected(plain);
    if (padding_ != kZeros) at = clipped(at);
    return {moved(x, at.x, at.factor), at.factor};
  }

  // A tap at whole positions; one outside of the image has no weight.
  Tap tap(const Tensor& at, const Tensor& weight, const Tensor& slope) const {
    const Tensor inside = op::bitwise_and(op::ge(at, Tensor(0)), op::lt(at, Tensor(size_)));
    const Tensor kept = of_dtype(inside, weight.dtype());
    const Tensor index = op::where(inside, at, op::zeros_like(at, {}, {}));
    return {of_dtype(index, DType::kInt64), op::mul(weight, kept), op::mul(slope, kept)};
  }

 private:
  Position clipped(const Position& at) const {
    const Tensor within = op::bitwise_and(op::gt(at.x, Tensor(0)), op::lt(at.x, Tensor(size_ - 1)));
    return {op::clamp(at.x, Scalar(0), Scalar(size_ - 1)),
            op::mul(at.factor, of_dtype(within, at.x.dtype()))};
  }

  // Mirrored at the centres of the outermost elements, or at their edges.
  Position reflected(const Tensor& x) const {
    const double low = align_ ? 0 : -0.5, span = align_ ? size_ - 1 : size_;
    if (span == 0) return {op::zeros_like(x, {}, {}), op::zeros_like(x, {}, {})};
    const Tensor from = plus(x, -low), below = op::lt(from, Tensor(0));
    const Tensor sign = op::where(below, Tensor(-1.0), ones_like(x));
    const Tensor distance = op::mul(from, sign);
    const Tensor extra = op::fmod(distance, Tensor(span));
    const Tensor flips = op::floor(op::div(distance, Tensor(span)));
    const Tensor odd = op::gt(op::fmod(flips, Tensor(2)), Tensor(0));
    const Tensor back = op::where(odd, minus(Tensor(span), extra), extra);
    return {plus(back, low), op::mul(sign, op::where(odd, Tensor(-1.0), ones_like(x)))};
  }

  double size_;
  Padding padding_;
  bool align_;
};

// a3 t^3 + a2 t^2 + a1 t + a0 and its derivative.
std::pair<Tensor, Tensor> cubic(const Tensor& t, const double (&a)[4]) {
  const Tensor value = plus(op::mul(plus(op::mul(plus(times(t, a[3]), a[2]), t), a[1]), t), a[0]);
  return {value, plus(op::mul(plus(times(t, 3 * a[3]), 2 * a[2]), t), a[1])};
}

std::vector<Tap> cubic_taps(const Line& line, const Tensor& x) {
  // Keys' kernel between 0 and 1 and between 1 and 2, as polynomials of the distance.
  constexpr double a = -0.75, near[4] = {1, 0, -(a + 3), a + 2},
                   far[4] = {-4 * a, 8 * a, -5 * a, a};
  const Tensor first = op::floor(op::detach(x)), t = minus(x, first);
  std::vector<Tap> taps;
  for (int64_t k = -1; k <= 2; k++) {
    const double direction = k <= 0 ? 1 : -1;  // the distance |t - k| grows or shrinks with t
    const Tensor distance = times(plus(t, static_cast<double>(-k)), direction);
    const auto [weight, slope] = cubic(distance, k == 0 || k == 1 ? near : far);
    const Position at = line.bordered(plus(first, static_cast<double>(k)));
    taps.push_back(line.tap(op::detach(at.x), weight, times(slope, direction * line.scale())));
  }
  return taps;
}

std::vector<Tap> taps_of(const Line& line, const Tensor& grid, Interpolation interpolation) {
  const Tensor x = line.position(grid);
  if (interpolation == kCubic) return cubic_taps(line, x);
  const Position at = line.bordered(x);
  if (interpolation == kNearest) {
    const Tensor one = ones_like(x);
    return {line.tap(op::round(op::detach(at.x)), one, op::zeros_like(one, {}, {}))};
  }
  const Tensor first = op::floor(op::detach(at.x)), t = minus(at.x, first);
  const Tensor slope = times(at.factor, line.scale());
  return {line.tap(first, minus(ones_like(t), t), times(slope, -1)),
          line.tap(plus(first, 1), t, slope)};
}

// The taps of all dimensions of the image, x last as in its sizes.
class Taps {
 public:
  Taps(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding, bool align)
      : sizes_(input.sizes().begin() + 2, input.sizes().end()) {
    const int64_t n = ndim();
    for (int64_t d = 0; d < n; d++) {
      const Line line(sizes_[static_cast<size_t>(d)], static_cast<Padding>(padding), align);
      taps_.push_back(taps_of(line, op::select(grid, -1, n - 1 - d),
                              static_cast<Interpolation>(interpolation)));
    }
  }

  int64_t ndim() const { return static_cast<int64_t>(sizes_.size()); }

  // Calls f(index into the image, weight, derivatives of the weight in each dimension).
  template <class F>
  void for_each(const F& f) const {
    std::vector<size_t> at(taps_.size(), 0);
    for (bool more = true; more;) {
      f(index(at), product(at, -1), slopes(at));
      more = false;
      for (size_t d = 0; d < at.size() && !more; d++)
        if (more = ++at[d] < taps_[d].size(); !more) at[d] = 0;
    }
  }

 private:
  Tensor index(const std::vector<size_t>& at) const {
    Tensor flat = taps_[0][at[0]].index;
    for (size_t d = 1; d < at.size(); d++)
      flat = plus(op::mul(flat, Tensor(sizes_[d])), taps_[d][at[d]].index);
    return flat;
  }
  // The product of weights, with the slope in place of the weight of one dimension.
  Tensor product(const std::vector<size_t>& at, int64_t sloping) const {
    Tensor result;
    for (size_t d = 0; d < at.size(); d++) {
      const Tap& tap = taps_[d][at[d]];
      const Tensor& factor = static_cast<int64_t>(d) == sloping ? tap.slope : tap.weight;
      result = result.defined() ? op::mul(result, factor) : factor;
    }
    return result;
  }
  std::vector<Tensor> slopes(const std::vector<size_t>& at) const {
    std::vector<Tensor> result;
    for (int64_t d = 0; d < ndim(); d++) result.push_back(product(at, d));
    return result;
  }

  DimVector sizes_;
  std::vector<std::vector<Tap>> taps_;
};

// [n, *] as the index of each channel of [n, c, elements].
Tensor for_channels(const Tensor& index, int64_t channels) {
  const int64_t n = index.size(0), count = checked_numel(index.sizes()) / std::max<int64_t>(n, 1);
  return op::expand(op::reshape(index, {n, 1, count}), {n, channels, count}, false);
}

// n and c, then all other elements.
Tensor flattened(const Tensor& image) {
  const int64_t n = image.size(0), c = image.size(1);
  return op::reshape(image, {n, c, image.numel() / std::max<int64_t>(n * c, 1)});
}

}  // namespace

Tensor _grid_sampler_by_taps(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                             int64_t padding_mode, bool align_corners) {
  const Taps taps(input, grid, interpolation_mode, padding_mode, align_corners);
  const Tensor image = flattened(input);
  DimVector sizes{input.size(0), input.size(1)};
  for (int64_t d = 1; d < grid.dim() - 1; d++) sizes.push_back(grid.size(d));
  Tensor result = op::new_zeros(input, sizes, {});
  taps.for_each([&](const Tensor& index, const Tensor& weight, const std::vector<Tensor>&) {
    const Tensor read = op::gather(image, 2, for_channels(index, input.size(1)), false);
    result = plus(result, op::mul(op::reshape(read, sizes), op::unsqueeze(weight, 1)));
  });
  return result;
}

std::tuple<Tensor, Tensor> _grid_sampler_backward_by_taps(const Tensor& gy, const Tensor& input,
                                                          const Tensor& grid,
                                                          int64_t interpolation_mode,
                                                          int64_t padding_mode,
                                                          bool align_corners) {
  const Taps taps(input, grid, interpolation_mode, padding_mode, align_corners);
  const Tensor image = flattened(input);
  Tensor gx = op::zeros_like(image, {}, {});
  std::vector<Tensor> ggrid(static_cast<size_t>(taps.ndim()));
  taps.for_each([&](const Tensor& index, const Tensor& weight, const std::vector<Tensor>& slopes) {
    const Tensor at = for_channels(index, input.size(1));
    gx = op::scatter_add(gx, 2, at, flattened(op::mul(gy, op::unsqueeze(weight, 1))));
    const Tensor read = op::reshape(op::gather(image, 2, at, false), gy.sizes());
    const Tensor along = op::sum(op::mul(read, gy), IntSpan{1}, false, {});
    for (size_t d = 0; d < slopes.size(); d++) {
      const Tensor part = op::mul(slopes[d], along);
      ggrid[d] = ggrid[d].defined() ? plus(ggrid[d], part) : part;
    }
  });
  std::reverse(ggrid.begin(), ggrid.end());
  return {op::reshape(gx, input.sizes()), op::stack(ggrid, -1)};
}

}  // namespace taeda::impl
