// torch.fft's transforms, stft and istft: arguments are brought into the form that _fft_c2c,
// _fft_r2c and _fft_c2r take. Where those normalize: 0 not at all, 1 by the root of the number of
// elements, 2 by the number.
#include <algorithm>

#include "core/strides.h"
#include "op/_fft_c2c.h"
#include "op/_fft_c2r.h"
#include "op/_fft_r2c.h"
#include "op/abs.h"
#include "op/arange.h"
#include "op/cat.h"
#include "op/clone.h"
#include "op/conj.h"
#include "op/conj_physical.h"
#include "op/constant_pad_nd.h"
#include "op/div.h"
#include "op/expand.h"
#include "op/min.h"
#include "op/mul.h"
#include "op/ones.h"
#include "op/pad.h"
#include "op/real.h"
#include "op/roll.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/to_dtype.h"
#include "op/transpose.h"
#include "op/unfold.h"
#include "op/unfold_backward.h"
#include "op/unsqueeze.h"
#include "op/view_as_real.h"
#include "ops/contract.h"
#include "ops/fft_rules.h"
#include "ops/host.h"
#include "taeda/error.h"

namespace taeda {

namespace rules {

namespace {

// Row-major strides of `sizes` when the dimensions follow each other as `order` says.
DimVector strides_in_order(IntSpan sizes, const DimVector& order) {
  DimVector permuted;
  for (const int64_t d : order) permuted.push_back(sizes[d]);
  const DimVector dense = contiguous_strides(permuted);
  DimVector strides(sizes.size(), 1);
  for (size_t i = 0; i < order.size(); i++) strides[order[i]] = dense[i];
  return strides;
}

// Of a result of `sizes`; the last `fixed` of `dim` keep their order, innermost.
DimVector fft_strides(IntSpan sizes, IntSpan input, IntSpan dim, size_t fixed) {
  DimVector order, transformed(dim);
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); d++)
    if (std::find(dim.begin(), dim.end(), d) == dim.end()) order.push_back(d);
  const auto wider = [&](int64_t a, int64_t b) { return input[a] > input[b]; };
  std::stable_sort(order.begin(), order.end(), wider);
  std::stable_sort(transformed.begin(), transformed.end() - fixed, wider);
  for (const int64_t d : transformed) order.push_back(d);
  return strides_in_order(sizes, order);
}

}  // namespace

DimVector fft_c2c_strides(const Tensor& self, IntSpan dim) {
  return fft_strides(self.sizes(), self.strides(), dim, 0);
}

DimVector fft_r2c_strides(const Tensor& self, IntSpan dim, bool onesided) {
  DimVector sizes(self.sizes());
  if (onesided) sizes[dim.back()] = sizes[dim.back()] / 2 + 1;
  // PyTorch's transform of all of several dimensions is that of a complex copy.
  const bool copied = !onesided && dim.size() > 1;
  const DimVector input =
      copied ? preserved_strides(self.sizes(), self.strides()) : DimVector(self.strides());
  return fft_strides(sizes, input, dim, onesided ? 1 : 0);
}

DimVector fft_c2r_strides(const Tensor& self, IntSpan dim, int64_t size) {
  DimVector input(self.strides()), sizes(self.sizes());
  if (dim.size() > 1) input = fft_strides(sizes, input, dim.slice(0, dim.size() - 1), 0);
  sizes[dim.back()] = size;
  return fft_strides(sizes, input, dim.slice(dim.size() - 1, 1), 0);
}

}  // namespace rules

namespace impl {
namespace {

using OptText = std::optional<std::string_view>;

int64_t normalization(const OptText& norm, bool forward) {
  if (!norm || *norm == "backward") return forward ? 0 : 2;
  if (*norm == "forward") return forward ? 2 : 0;
  TD_CHECK(*norm == "ortho", "Invalid normalization mode: \"{}\"", *norm);
  return 1;
}

// Integers become the default dtype; half precision has no transforms on the CPU.
Tensor floating(const Tensor& x, bool complex) {
  DType t = is_inexact(x.dtype()) ? x.dtype() : default_dtype();
  TD_CHECK(!is_reduced_floating(t) && !is_storage_type(t), "Unsupported dtype {}",
           scalar_type_name(t));
  if (complex) t = to_complex(t);
  return x.dtype() == t ? x : op::to_dtype(x, t, false, std::nullopt);
}

void check_real(std::string_view name, const Tensor& x) {
  TD_CHECK(!x.is_complex(), "{} expects a real input tensor, but got {}", name,
           scalar_type_name(x.dtype()));
}

void check_points(int64_t n) {
  TD_CHECK(n >= 1, "Invalid number of data points ({}) specified", n);
}

// x with n elements along `dim`: the first of them, or zeros behind them.
Tensor resized(const Tensor& x, int64_t dim, int64_t n) {
  const int64_t size = x.size(dim);
  if (n == size) return x;
  if (n < size) return op::slice(x, dim, 0, n, 1);
  DimVector pad(2 * (x.dim() - dim), 0);
  pad.back() = n - size;
  return op::constant_pad_nd(x, pad, Scalar(int64_t{0}));
}

// The dimensions of a transform and how many elements of each it takes; -1 stands for all.
struct Extent {
  DimVector dims, sizes;
};

DimVector wrapped(IntSpan dims, int64_t ndim) {
  DimVector result;
  for (const int64_t d : dims) {
    TD_CHECK_INDEX(ndim > 0, "Dimension specified as {} but tensor has no dimensions", d);
    result.push_back(contract::wrap_dim(d, ndim));
  }
  return result;
}

Extent extent_of(const Tensor& x, OptInts s, OptInts dim) {
  const int64_t ndim = x.dim();
  Extent e;
  if (dim) {
    e.dims = wrapped(*dim, ndim);
    DimVector sorted = e.dims;
    std::sort(sorted.begin(), sorted.end());
    TD_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
             "FFT dims must be unique");
    TD_CHECK(!s || s->size() == dim->size(),
             "When given, dim and shape arguments must have the same length");
  } else {
    const int64_t count = s ? static_cast<int64_t>(s->size()) : ndim;
    TD_CHECK(count <= ndim, "Got shape with {} values but input tensor only has {} dimensions.",
             count, ndim);
    for (int64_t d = ndim - count; d < ndim; d++) e.dims.push_back(d);
  }
  for (size_t i = 0; i < e.dims.size(); i++) e.sizes.push_back(s ? (*s)[i] : -1);
  return e;
}

// The same for transforms of one dimension.
Extent extent_of(const Tensor& x, OptInt n, int64_t dim) {
  const int64_t dims[] = {dim}, sizes[] = {n ? *n : -1};
  const Extent e = extent_of(x, OptInts(IntSpan(sizes, 1)), OptInts(IntSpan(dims, 1)));
  if (n) check_points(*n);
  return e;
}

// `last`: how many elements of the last dimension, where that is known already.
Tensor resized(Tensor x, const Extent& e, OptInt last = std::nullopt) {
  for (size_t i = 0; i < e.dims.size(); i++) {
    const bool given = last && i + 1 == e.dims.size();
    const int64_t n = given ? *last : e.sizes[i] == -1 ? x.size(e.dims[i]) : e.sizes[i];
    check_points(n);
    x = resized(x, e.dims[i], n);
  }
  return x;
}

Tensor complex_transform(const Tensor& self, const Extent& e, const OptText& norm, bool forward) {
  const int64_t by = normalization(norm, forward);
  const bool real = forward && !self.is_complex() && !e.dims.empty();  // half the work
  const Tensor x = resized(floating(self, !real), e);
  if (real) return op::_fft_r2c(x, e.dims, by, false);
  if (e.dims.empty()) return op::clone(x, std::nullopt);
  return op::_fft_c2c(x, e.dims, by, forward);
}

Tensor of_real(std::string_view name, const Tensor& self, const Extent& e, const OptText& norm,
               bool forward) {
  check_real(name, self);
  TD_CHECK(!e.dims.empty(), "{} must transform at least one axis", name);
  const int64_t by = normalization(norm, forward);
  const Tensor x = resized(floating(self, false), e);
  if (forward) return op::_fft_r2c(x, e.dims, by, true);
  const IntSpan dims = e.dims;
  const Tensor y = op::_fft_r2c(x, dims.slice(dims.size() - 1, 1), by, true);
  if (dims.size() == 1) return op::conj(y);
  return op::_fft_c2c(op::conj_physical(y), dims.slice(0, dims.size() - 1), by, false);
}

Tensor to_real(std::string_view name, const Tensor& self, const Extent& e, const OptText& norm,
               bool forward) {
  TD_CHECK(!e.dims.empty(), "{} must transform at least one axis", name);
  const int64_t by = normalization(norm, forward);
  const int64_t last = e.sizes.back() == -1 ? 2 * (self.size(e.dims.back()) - 1) : e.sizes.back();
  check_points(last);
  const Tensor x = resized(floating(self, true), e, last / 2 + 1);
  return op::_fft_c2r(forward ? op::conj(x) : x, e.dims, by, last);
}

}  // namespace

Tensor fft_fft(const Tensor& self, OptInt n, int64_t dim, OptText norm) {
  return complex_transform(self, extent_of(self, n, dim), norm, true);
}
Tensor fft_ifft(const Tensor& self, OptInt n, int64_t dim, OptText norm) {
  const Extent e = extent_of(self, n, dim);
  if (self.is_complex()) return complex_transform(self, e, norm, false);
  // Of real numbers it is the conjugate of the other direction, and as in PyTorch a view of that.
  const Tensor x = resized(floating(self, false), e);
  return op::conj(op::_fft_r2c(x, e.dims, normalization(norm, false), false));
}
Tensor fft_rfft(const Tensor& self, OptInt n, int64_t dim, OptText norm) {
  return of_real("rfft", self, extent_of(self, n, dim), norm, true);
}
Tensor fft_irfft(const Tensor& self, OptInt n, int64_t dim, OptText norm) {
  return to_real("irfft", self, extent_of(self, n, dim), norm, false);
}
Tensor fft_hfft(const Tensor& self, OptInt n, int64_t dim, OptText norm) {
  return to_real("hfft", self, extent_of(self, n, dim), norm, true);
}
Tensor fft_ihfft(const Tensor& self, OptInt n, int64_t dim, OptText norm) {
  return of_real("ihfft", self, extent_of(self, n, dim), norm, false);
}

Tensor fft_fftn(const Tensor& self, OptInts s, OptInts dim, OptText norm) {
  return complex_transform(self, extent_of(self, s, dim), norm, true);
}
Tensor fft_ifftn(const Tensor& self, OptInts s, OptInts dim, OptText norm) {
  return complex_transform(self, extent_of(self, s, dim), norm, false);
}
Tensor fft_rfftn(const Tensor& self, OptInts s, OptInts dim, OptText norm) {
  return of_real("rfftn", self, extent_of(self, s, dim), norm, true);
}
Tensor fft_irfftn(const Tensor& self, OptInts s, OptInts dim, OptText norm) {
  return to_real("irfftn", self, extent_of(self, s, dim), norm, false);
}
Tensor fft_hfftn(const Tensor& self, OptInts s, OptInts dim, OptText norm) {
  return to_real("hfftn", self, extent_of(self, s, dim), norm, true);
}
Tensor fft_ihfftn(const Tensor& self, OptInts s, OptInts dim, OptText norm) {
  return of_real("ihfftn", self, extent_of(self, s, dim), norm, false);
}

namespace {

// first, first + 1, ... first + count - 1, times scale
Tensor range(int64_t first, int64_t count, double scale, const TensorOptions& options) {
  const Tensor indices =
      op::arange_start(Scalar(first), Scalar(first + count), Scalar(int64_t{1}), options);
  return op::mul(indices, Tensor(Scalar(scale)));
}

TensorOptions floating_by_default(std::string_view name, TensorOptions options) {
  if (!options.dtype) options.dtype = default_dtype();
  TD_CHECK(is_inexact(*options.dtype), "{} requires a floating point or complex dtype", name);
  return options;
}

Tensor rolled(const Tensor& self, OptInts dim, bool back) {
  const DimVector dims =
      dim ? wrapped(*dim, self.dim()) : extent_of(self, std::nullopt, std::nullopt).dims;
  DimVector shifts;
  for (const int64_t d : dims) shifts.push_back((self.size(d) + (back ? 1 : 0)) / 2);
  return op::roll(self, shifts, dims);
}

}  // namespace

Tensor fft_fftfreq(int64_t n, double d, const TensorOptions& options) {
  const double scale = 1 / (static_cast<double>(n) * d);
  const TensorOptions floats = floating_by_default("fftfreq", options);
  const Tensor parts[] = {range(0, (n + 1) / 2, scale, floats),
                          range(-(n / 2), n / 2, scale, floats)};
  return op::cat({parts, 2}, 0);
}
Tensor fft_rfftfreq(int64_t n, double d, const TensorOptions& options) {
  return range(0, n / 2 + 1, 1 / (static_cast<double>(n) * d),
               floating_by_default("rfftfreq", options));
}
Tensor fft_fftshift(const Tensor& self, OptInts dim) { return rolled(self, dim, false); }
Tensor fft_ifftshift(const Tensor& self, OptInts dim) { return rolled(self, dim, true); }

namespace {

Tensor ones_of(int64_t n, const Tensor& like) {
  TensorOptions options(like.dtype());
  options.device = like.device();
  return op::ones({&n, 1}, options);
}

// A window of n_fft elements: the one given, with zeros on both sides, or ones.
Tensor whole_window(const Tensor& window, const Tensor& like, int64_t n_fft, int64_t length) {
  const Tensor w = window.defined() ? window : ones_of(length, like);
  if (length == n_fft) return w;
  const int64_t left = (n_fft - length) / 2, pad[] = {left, n_fft - length - left};
  return op::constant_pad_nd(w, {pad, 2}, Scalar(int64_t{0}));
}

struct Frames {
  int64_t hop, window;
};

Frames frames_of(std::string_view name, int64_t n_fft, OptInt hop_length, OptInt win_length,
                 const Tensor& window) {
  const Frames f{hop_length ? *hop_length : n_fft / 4, win_length ? *win_length : n_fft};
  TD_CHECK(f.hop > 0, "{}: expected hop_length > 0, but got hop_length={}", name, f.hop);
  TD_CHECK(f.window > 0 && f.window <= n_fft,
           "{}: expected 0 < win_length <= n_fft, but got win_length={}", name, f.window);
  if (window.defined())
    TD_CHECK(window.dim() == 1 && window.size(0) == f.window,
             "{}: expected a 1D window tensor of size equal to win_length={}, but got window with "
             "size {}",
             name, f.window, window.sizes());
  return f;
}

}  // namespace

Tensor stft(const Tensor& self, int64_t n_fft, OptInt hop_length, OptInt win_length,
            const Tensor& window, bool center, std::string_view pad_mode, bool normalized,
            OptBool onesided, OptBool return_complex, OptBool align_to_window) {
  const bool complex = self.is_complex() || (window.defined() && window.is_complex());
  TD_CHECK(return_complex || complex,
           "stft requires the return_complex parameter be given for real inputs, and will further "
           "require that return_complex=True in a future PyTorch release.");
  TD_CHECK(!center || !align_to_window,
           "stft align_to_window should only be set when center = false");
  TD_CHECK(self.dim() == 1 || self.dim() == 2, "stft: expected a 1D or 2D tensor");
  const Frames f = frames_of("stft", n_fft, hop_length, win_length, window);
  Tensor x = self.dim() == 1 ? op::unsqueeze(self, 0) : self;
  if (center) {
    const int64_t pad[] = {n_fft / 2, n_fft / 2};
    x = op::pad(x, {pad, 2}, pad_mode, std::nullopt);
  }
  TD_CHECK(is_inexact(self.dtype()), "stft: expected a tensor of floating point or complex values");
  TD_CHECK(n_fft > 0 && n_fft <= x.size(1), "stft: expected 0 < n_fft < {}, but got n_fft={}",
           x.size(1), n_fft);
  if (!center && align_to_window && *align_to_window) {
    const int64_t around = n_fft - f.window, pad[] = {around / 2, around - around / 2};
    x = op::constant_pad_nd(x, {pad, 2}, 0);
  }
  Tensor frames = op::unfold(x, 1, n_fft, f.hop);
  if (window.defined() || f.window < n_fft)
    frames = op::mul(frames, whole_window(window, x, n_fft, f.window));
  const bool half = onesided ? *onesided : !complex;
  TD_CHECK(!half || !complex, "Cannot have onesided output if window or input is complex");
  const int64_t last[] = {2}, by = normalized ? 1 : 0;
  const Tensor spectrum = complex ? op::_fft_c2c(frames, {last, 1}, by, true)
                                  : op::_fft_r2c(frames, {last, 1}, by, half);
  Tensor y = op::transpose(spectrum, 1, 2);
  if (self.dim() == 1) y = op::select(y, 0, 0);
  return return_complex && !*return_complex ? op::view_as_real(y) : y;
}

Tensor istft(const Tensor& self, int64_t n_fft, OptInt hop_length, OptInt win_length,
             const Tensor& window, bool center, bool normalized, OptBool onesided, OptInt length,
             bool return_complex) {
  TD_CHECK(self.is_complex(),
           "istft requires a complex-valued input tensor matching the output from stft with "
           "return_complex=True.");
  if (self.dim() < 2) contract::wrap_dim(-2, self.dim());  // an IndexError
  TD_CHECK(self.numel() > 0, "istft: input tensor cannot be empty.");
  TD_CHECK(self.dim() == 2 || self.dim() == 3,
           "istft: input of dimensions 2 or 3 expected, but got {}", self.dim());
  const Frames f = frames_of("istft", n_fft, hop_length, win_length, window);
  TD_CHECK(return_complex || !window.defined() || !window.is_complex(),
           "istft: a complex window needs return_complex=True, as the signal is complex too");
  Tensor x = self.dim() == 2 ? op::unsqueeze(self, 0) : self;
  const int64_t bins = x.size(1), frames = x.size(2);
  const bool half = onesided ? *onesided : bins != n_fft;
  TD_CHECK(bins == (half ? n_fft / 2 + 1 : n_fft),
           "istft: expected the frequency dimension (3rd to the last) of the input tensor to match "
           "n_fft{} when onesided={}, but got {}",
           half ? " / 2 + 1" : "", half ? "True" : "False", bins);
  TD_CHECK(!(return_complex && half), "Cannot have onesided output if window or input is complex");
  const Tensor real = op::real(x);
  Tensor weights = whole_window(window, real, n_fft, f.window);
  if (weights.dtype() == DType::kBool)
    weights = op::to_dtype(weights, real.dtype(), false, std::nullopt);
  const int64_t last[] = {2}, by = normalized ? 1 : 2;
  x = op::transpose(x, 1, 2);
  // As in PyTorch the first half of a two-sided input says all of a real signal.
  if (!half && !return_complex) x = op::slice(x, 2, 0, n_fft / 2 + 1, 1);
  Tensor chunks = return_complex ? op::_fft_c2c(x, {last, 1}, by, false)
                                 : op::_fft_c2r(x, {last, 1}, by, n_fft);
  chunks = op::mul(chunks, weights);
  const int64_t whole = n_fft + f.hop * (frames - 1), sizes[] = {x.size(0), whole};
  Tensor y = op::unfold_backward(chunks, {sizes, 2}, 1, n_fft, f.hop);
  const int64_t repeated[] = {1, frames, n_fft}, one[] = {1, whole};
  Tensor envelope = op::unfold_backward(op::expand(op::mul(weights, weights), {repeated, 3}, false),
                                        {one, 2}, 1, n_fft, f.hop);
  const int64_t begin = center ? n_fft / 2 : 0;
  const int64_t end = length ? begin + *length : center ? whole - n_fft / 2 : whole;
  y = op::slice(y, 1, begin, end, 1);
  envelope = op::slice(envelope, 1, begin, end, 1);
  if (envelope.numel() > 0) {
    const OptScalar least = known_number(op::min(op::abs(envelope)));
    TD_CHECK(!least || least->to_double() >= 1e-11, "window overlap add min: {}",
             least->to_double());
  }
  y = op::div(y, envelope);
  if (self.dim() == 2) y = op::select(y, 0, 0);
  return length ? resized(y, y.dim() - 1, *length) : y;
}

}  // namespace impl
}  // namespace taeda
