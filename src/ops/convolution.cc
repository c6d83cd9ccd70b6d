// Convolutions on tensors: the contract, result sizes and memory formats, and the calls of the
// kernels.
#include "kernels/cpu/conv/convolution.h"

#include <algorithm>

#include "core/layout.h"
#include "op/add.h"
#include "op/constant_pad_nd.h"
#include "op/contiguous.h"
#include "op/convolution.h"
#include "op/convolution_backward_input.h"
#include "op/convolution_backward_weight.h"
#include "op/reshape.h"
#include "op/squeeze.h"
#include "op/sum.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "ops/allocate.h"
#include "ops/dispatch.h"
#include "ops/expr.h"
#include "ops/reduce_rules.h"

namespace taeda {

namespace {

// What both directions agree on, with every list brought to one value a spatial dimension.
struct Geometry {
  DimVector stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;

  size_t spatial() const { return stride.size(); }
  cpu::ConvGeometry kernel() const { return {stride, padding, dilation, groups}; }
};

DimVector repeated(IntSpan values, size_t count, std::string_view name) {
  if (values.size() == 1) return DimVector(count, values[0]);
  TD_CHECK(values.size() == count,
           "expected {} to be a single integer value or a list of {} values to match the "
           "convolution dimensions, but got "
           "{}={}",
           name, static_cast<int64_t>(count), name, values);
  return values;
}

// "stride_height: 1 stride_width: 2"; a convolution over one axis has a height of `other`.
std::string by_axis(std::string_view what, IntSpan values, int64_t other) {
  constexpr std::string_view kAxes[] = {"depth", "height", "width"};
  if (values.size() == 1) return by_axis(what, DimVector{other, values[0]}, other);
  std::string text;
  for (size_t i = 0; i < values.size(); i++)
    text += format("{}{}_{}: {}", i ? " " : "", what, kAxes[i + 3 - values.size()], values[i]);
  return text;
}

Geometry make_geometry(int64_t ndim, IntSpan stride, IntSpan padding, IntSpan dilation,
                       bool transposed, IntSpan output_padding, int64_t groups) {
  TD_CHECK(ndim >= 3 && ndim <= 5, "convolution: expected weight of 3 to 5 dimensions, got {}",
           ndim);
  const size_t count = static_cast<size_t>(ndim - 2);
  Geometry g{repeated(stride, count, "stride"),
             repeated(padding, count, "padding"),
             repeated(dilation, count, "dilation"),
             repeated(output_padding, count, "output_padding"),
             transposed,
             groups};
  const auto all = [](const DimVector& values, int64_t least) {
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least; });
  };
  TD_CHECK(all(g.padding, 0), "negative padding is not supported");
  TD_CHECK(all(g.output_padding, 0), "negative output_padding is not supported");
  TD_CHECK(all(g.stride, 1), "non-positive stride is not supported");
  TD_CHECK(all(g.dilation, 1), "dilation should be greater than zero, but got {}",
           IntSpan(g.dilation));
  TD_CHECK(groups > 0, "non-positive groups is not supported");
  for (size_t i = 0; i < count && transposed; i++)
    TD_CHECK(g.output_padding[i] < g.stride[i] || g.output_padding[i] < g.dilation[i],
             "output padding must be smaller than either stride or dilation, but got {} {} {}",
             by_axis("output_padding", g.output_padding, 0), by_axis("stride", g.stride, 1),
             by_axis("dilation", g.dilation, 1));
  if (!transposed) g.output_padding = DimVector(count, 0);
  return g;
}

std::string times(IntSpan values) {
  std::string text;
  for (const int64_t v : values) text += (text.empty() ? "" : " x ") + std::to_string(v);
  return text;
}

// The span of a dilated kernel.
int64_t reach(int64_t kernel, int64_t dilation) {
  return expr::add(expr::mul(dilation, expr::sub(kernel, 1)), 1);
}

// The sizes of the result of the convolution of `input` with `weight`; checks all sizes.
DimVector result_sizes(IntSpan input, IntSpan weight, const Geometry& g) {
  TD_CHECK(input.size() == weight.size(),
           "Expected {}D (batched) input to convolution for weight of size {}, but got input of "
           "size: {}",
           static_cast<int64_t>(weight.size()), weight, input);
  const int64_t out = g.transposed ? expr::mul(weight[1], g.groups) : weight[0];
  const int64_t in = g.transposed ? weight[0] : expr::mul(weight[1], g.groups);
  TD_CHECK(weight[0] >= g.groups,
           "Given groups={}, expected weight to be at least {} at dimension 0, but got weight of "
           "size {} instead",
           g.groups, g.groups, weight);
  TD_CHECK(weight[0] % g.groups == 0,
           "Given groups={}, expected weight to be divisible by {} at dimension 0, but got weight "
           "of size {} instead",
           g.groups, g.groups, weight);
  if (g.transposed) {
    TD_CHECK(input[1] == in,
             "Given transposed=1, weight of size {}, expected input{} to have {} channels, but got "
             "{} channels instead",
             weight, input, in, input[1]);
  } else {
    TD_CHECK(input[1] == in,
             "Given groups={}, weight of size {}, expected input{} to have {} channels, but got {} "
             "channels instead",
             g.groups, weight, input, in, input[1]);
  }
  const IntSpan kernel = weight.slice(2, g.spatial());
  TD_CHECK(std::all_of(kernel.begin(), kernel.end(), [](int64_t k) { return k > 0; }),
           "kernel size should be greater than zero, but got kernel size {}", kernel);

  DimVector sizes{input[0], out}, padded, spans;
  bool fits = true;
  for (size_t i = 0; i < g.spatial(); i++) {
    const int64_t size = input[i + 2], span = reach(kernel[i], g.dilation[i]),
                  both = expr::mul(g.padding[i], 2);
    if (g.transposed) {
      const int64_t full = expr::add(expr::mul(expr::sub(size, 1), g.stride[i]), span);
      sizes.push_back(expr::add(expr::sub(full, both), g.output_padding[i]));
      fits = fits && size > 0 && sizes.back() > 0;
    } else {
      padded.push_back(expr::add(size, both));
      spans.push_back(span);
      fits = fits && size > 0 && padded.back() >= span;
      sizes.push_back(fits ? (padded.back() - span) / g.stride[i] + 1 : 0);
    }
  }
  if (g.transposed) {
    TD_CHECK(fits,
             "Given input size per channel: ({}). Calculated output size per channel: ({}). Output "
             "size is too small",
             times(input.slice(2, g.spatial())), times(IntSpan(sizes).slice(2, g.spatial())));
  } else {
    TD_CHECK(fits,
             "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't "
             "be greater than actual input size",
             times(padded), times(spans));
  }
  return sizes;
}

bool channels_last(const Tensor& t) {
  if (t.dim() != 4 && t.dim() != 5) return false;
  return t.is_contiguous(t.dim() == 4 ? MemoryFormat::kChannelsLast
                                      : MemoryFormat::kChannelsLast3d) &&
         !t.is_contiguous();
}

// Row-major or channels-last; a copy where it is neither.
Tensor dense(const Tensor& t, bool last) {
  if (!last) return op::contiguous(t, MemoryFormat::kContiguous);
  return op::contiguous(t,
                        t.dim() == 4 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsLast3d);
}

Tensor dense(const Tensor& t) { return dense(t, channels_last(t)); }

// Whether the result is channels-last. Volumes are on the CPU where PyTorch gives them to oneDNN:
// single precision, complex numbers as two, of some size, padded by less than a stride.
bool is_result_channels_last(const Tensor& input, const Tensor& weight, const Geometry& g) {
  if (!channels_last(input) && !channels_last(weight)) return false;
  if (weight.dim() < 5 || !input.device().is_cpu()) return true;
  if (to_real(input.dtype()) != DType::kFloat32) return false;
  for (size_t i = 0; g.transposed && i < g.spatial(); i++)
    if (g.output_padding[i] >= g.stride[i]) return false;
  return g.groups > 1 || (weight.size(-1) > 3 && weight.size(-2) > 3) || input.size(0) > 1 ||
         checked_numel(input.sizes().slice(0, 4)) > 20480;
}

Tensor empty_result(IntSpan sizes, bool last, const Tensor& like) {
  if (!last) return empty_tensor(sizes, like.dtype(), like.device());
  DimVector strides(sizes.size());
  int64_t stride = 1;
  strides[1] = stride;
  stride = std::max<int64_t>(sizes[1], 1);
  for (size_t i = sizes.size(); i-- > 2;) {
    strides[i] = stride;
    stride = expr::mul(stride, std::max<int64_t>(sizes[i], 1));
  }
  strides[0] = stride;
  return empty_strided_tensor(sizes, strides, like.dtype(), like.device());
}

bool widens(const Tensor& t) {
  return is_reduced_floating(t.dtype()) && !cpu::onednn_convolves(t.dtype());
}
Tensor widened(const Tensor& t) {
  return t.defined() ? op::to_dtype(t, DType::kFloat32, false, std::nullopt) : t;
}
Tensor narrowed(const Tensor& t, DType dtype) {
  return op::to_dtype(t, dtype, false, std::nullopt);
}

Tensor sum_over_positions(const Tensor& gy) {
  DimVector dims{0};
  for (int64_t d = 2; d < gy.dim(); d++) dims.push_back(d);
  return op::sum(gy, OptInts(dims), false, std::nullopt);
}

}  // namespace

namespace impl {

Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                   IntSpan padding, IntSpan dilation, bool transposed, IntSpan output_padding,
                   int64_t groups) {
  const Geometry g =
      make_geometry(weight.dim(), stride, padding, dilation, transposed, output_padding, groups);
  TD_CHECK(input.dtype() == weight.dtype(), "expected scalar type {} but found {}",
           scalar_type_name(input.dtype()), scalar_type_name(weight.dtype()));
  // PyTorch adds the bias of a transposed convolution in one or two dimensions at the end.
  const bool added = transposed && weight.dim() <= 4;
  TD_CHECK(!bias.defined() || bias.dtype() == input.dtype() ||
               (added && can_cast(bias.dtype(), input.dtype())),
           "Input type ({}) and bias type ({}) should be the same",
           rules::cxx_type_name(input.dtype()), rules::cxx_type_name(bias.dtype()));
  const DimVector sizes = result_sizes(input.sizes(), weight.sizes(), g);
  TD_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == sizes[1]),
           "Given {}weight of size {}, expected bias to be 1-dimensional with {} elements, but got "
           "bias of size {} instead",
           transposed ? "transposed=1, " : "", weight.sizes(), sizes[1], bias.sizes());
  const bool last = is_result_channels_last(input, weight, g);
  if (widens(input)) {
    const Tensor x = widened(input), w = widened(weight);
    const Tensor wide =
        impl::convolution(last ? x : dense(x, false), last ? w : dense(w, false), widened(bias),
                          stride, padding, dilation, transposed, output_padding, groups);
    return narrowed(wide, input.dtype());
  }
  Tensor result = empty_result(sizes, last, input);
  const Tensor x = dense(input, last), w = last ? dense(weight) : dense(weight, false);
  if (!transposed) {
    kernels::convolution_forward(view_of(result), view_of(x), view_of(w), view_of(bias),
                                 g.kernel());
    return result;
  }
  kernels::convolution_input_gradient(view_of(result), view_of(x), view_of(w), g.kernel());
  if (bias.defined()) {
    DimVector broadcast(static_cast<size_t>(result.dim()), 1);
    broadcast[1] = sizes[1];
    op::add_inplace(result, op::reshape(bias, broadcast), Scalar(int64_t{1}));
  }
  return result;
}

Tensor convolution_backward_input(const Tensor& grad_output, const Tensor& weight,
                                  IntSpan input_size, IntSpan stride, IntSpan padding,
                                  IntSpan dilation, bool transposed, IntSpan output_padding,
                                  int64_t groups) {
  const Geometry g =
      make_geometry(weight.dim(), stride, padding, dilation, transposed, output_padding, groups);
  const DimVector sizes = result_sizes(input_size, weight.sizes(), g);
  TD_CHECK(grad_output.sizes() == IntSpan(sizes),
           "convolution_backward_input: expected grad_output of size {}, got {}", IntSpan(sizes),
           grad_output.sizes());
  TD_CHECK(grad_output.dtype() == weight.dtype(),
           "convolution_backward_input: expected grad_output of type {}, got {}", weight.dtype(),
           grad_output.dtype());
  if (widens(weight)) {
    const Tensor wide =
        impl::convolution_backward_input(widened(grad_output), widened(weight), input_size, stride,
                                         padding, dilation, transposed, output_padding, groups);
    return narrowed(wide, weight.dtype());
  }
  const bool last = channels_last(grad_output) || channels_last(weight);
  Tensor result = empty_result(input_size, last, weight);
  const Tensor gy = dense(grad_output, last), w = dense(weight);
  if (transposed)
    kernels::convolution_forward(view_of(result), view_of(gy), view_of(w), {}, g.kernel());
  else
    kernels::convolution_input_gradient(view_of(result), view_of(gy), view_of(w), g.kernel());
  return result;
}

std::tuple<Tensor, Tensor> convolution_backward_weight(const Tensor& grad_output,
                                                       const Tensor& input, IntSpan weight_size,
                                                       IntSpan stride, IntSpan padding,
                                                       IntSpan dilation, bool transposed,
                                                       IntSpan output_padding, int64_t groups,
                                                       bool with_bias) {
  const Geometry g = make_geometry(static_cast<int64_t>(weight_size.size()), stride, padding,
                                   dilation, transposed, output_padding, groups);
  const DimVector sizes = result_sizes(input.sizes(), weight_size, g);
  TD_CHECK(grad_output.sizes() == IntSpan(sizes),
           "convolution_backward_weight: expected grad_output of size {}, got {}", IntSpan(sizes),
           grad_output.sizes());
  TD_CHECK(grad_output.dtype() == input.dtype(),
           "convolution_backward_weight: expected grad_output of type {}, got {}", input.dtype(),
           grad_output.dtype());
  if (widens(input)) {
    const auto [gw, gb] = impl::convolution_backward_weight(
        widened(grad_output), widened(input), weight_size, stride, padding, dilation, transposed,
        output_padding, groups, with_bias);
    return {narrowed(gw, input.dtype()), narrowed(gb, input.dtype())};
  }
  const Tensor gw = empty_tensor(weight_size, input.dtype(), input.device());
  const bool last = channels_last(grad_output) || channels_last(input);
  const Tensor gy = dense(grad_output, last), x = dense(input, last);
  kernels::convolution_weight_gradient(view_of(gw), view_of(transposed ? x : gy),
                                       view_of(transposed ? gy : x), g.kernel());
  const Tensor gb = with_bias ? sum_over_positions(gy)
                              : empty_tensor(DimVector{0}, input.dtype(), input.device());
  return {gw, gb};
}

namespace {

// An input without a batch dimension gets one for the call.
template <class Call>
Tensor batched(const char* name, const Tensor& input, int64_t spatial, const Call& call) {
  TD_CHECK(input.dim() == spatial + 1 || input.dim() == spatial + 2,
           "Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {}",
           spatial + 1, spatial + 2, name, input.sizes());
  if (input.dim() == spatial + 2) return call(input);
  return op::squeeze_dim(call(op::unsqueeze(input, 0)), DimVector{0});
}

void check_weight(const char* name, const Tensor& weight, int64_t spatial, IntSpan stride) {
  TD_CHECK(weight.dim() == spatial + 2,
           "{}: expected stride to be a single integer value or a list of {} values to match the "
           "convolution dimensions, "
           "but got stride={} for weight of size {}",
           name, weight.dim() - 2, stride, weight.sizes());
}

Tensor plain(const char* name, int64_t spatial, const Tensor& input, const Tensor& weight,
             const Tensor& bias, IntSpan stride, IntSpan padding, IntSpan dilation,
             int64_t groups) {
  check_weight(name, weight, spatial, stride);
  return batched(name, input, spatial, [&](const Tensor& x) {
    return op::convolution(x, weight, bias, stride, padding, dilation, false, DimVector{0}, groups);
  });
}

Tensor transpose(const char* name, int64_t spatial, const Tensor& input, const Tensor& weight,
                 const Tensor& bias, IntSpan stride, IntSpan padding, IntSpan output_padding,
                 int64_t groups, IntSpan dilation) {
  check_weight(name, weight, spatial, stride);
  return batched(name, input, spatial, [&](const Tensor& x) {
    return op::convolution(x, weight, bias, stride, padding, dilation, true, output_padding,
                           groups);
  });
}

// 'same' keeps the sizes; where the padding is odd, the longer side is padded apart.
Tensor named_padding(const char* name, int64_t spatial, const Tensor& input, const Tensor& weight,
                     const Tensor& bias, IntSpan stride, std::string_view padding, IntSpan dilation,
                     int64_t groups) {
  const size_t count = static_cast<size_t>(spatial);
  if (padding == "valid")
    return plain(name, spatial, input, weight, bias, stride, DimVector{0}, dilation, groups);
  TD_CHECK(padding == "same", "Invalid padding string: '{}'", padding);
  check_weight(name, weight, spatial, stride);
  const DimVector steps = repeated(stride, count, "stride"),
                  spread = repeated(dilation, count, "dilation");
  TD_CHECK(std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 1; }),
           "padding='same' is not supported for strided convolutions");
  DimVector both, extra(2 * count, 0);
  bool uneven = false;
  for (size_t i = 0; i < count; i++) {
    TD_CHECK(spread[i] > 0, "dilation should be greater than zero, but got {}", IntSpan(spread));
    const int64_t total =
        expr::mul(spread[i], std::max<int64_t>(weight.size(static_cast<int64_t>(i) + 2) - 1, 0));
    both.push_back(total / 2);
    extra[2 * (count - 1 - i) + 1] = total % 2;
    uneven = uneven || total % 2;
  }
  const Tensor x = uneven ? op::constant_pad_nd(input, extra, 0) : input;
  return plain(name, spatial, x, weight, bias, stride, both, dilation, groups);
}

}  // namespace

#define TD_CONVOLUTION(n)                                                                          \
  Tensor conv##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, \
                    IntSpan padding, IntSpan dilation, int64_t groups) {                           \
    return plain("conv" #n "d", n, input, weight, bias, stride, padding, dilation, groups);        \
  }                                                                                                \
  Tensor conv##n##d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias,         \
                            IntSpan stride, std::string_view padding, IntSpan dilation,            \
                            int64_t groups) {                                                      \
    return named_padding("conv" #n "d", n, input, weight, bias, stride, padding, dilation,         \
                         groups);                                                                  \
  }                                                                                                \
  Tensor conv_transpose##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias,       \
                              IntSpan stride, IntSpan padding, IntSpan output_padding,             \
                              int64_t groups, IntSpan dilation) {                                  \
    return transpose("conv_transpose" #n "d", n, input, weight, bias, stride, padding,             \
                     output_padding, groups, dilation);                                            \
  }
TD_CONVOLUTION(1)
TD_CONVOLUTION(2)
TD_CONVOLUTION(3)
#undef TD_CONVOLUTION

}  // namespace impl

}  // namespace taeda
