// Pooling, resizing and padding of channels-last images, the hand-written bodies of ops/pool.yaml
// and ops/image.yaml: the result is channels-last too, as in PyTorch.
//
// An image [n, c, h, w] in channels-last memory is a row-major volume [n, h, w, c], and pooling it
// is pooling that volume with windows of length one along c. So the row-major kernels serve, and
// their inner loops run along the channels.
#include <algorithm>

#include "core/layout.h"
#include "op/_adaptive_avg_pool2d.h"
#include "op/_adaptive_max_pool2d.h"
#include "op/_avg_pool2d.h"
#include "op/_max_pool2d.h"
#include "op/_max_pool2d_with_indices.h"
#include "op/_max_pool3d.h"
#include "op/_max_pool3d_with_indices.h"
#include "op/adaptive_avg_pool3d.h"
#include "op/adaptive_max_pool3d.h"
#include "op/avg_pool3d.h"
#include "op/constant_pad_nd.h"
#include "op/contiguous.h"
#include "op/floor_divide.h"
#include "op/full.h"
#include "op/pad_by_index.h"
#include "op/permute.h"
#include "op/resample.h"
#include "op/squeeze.h"
#include "op/unsqueeze.h"
#include "ops/autocast.h"
#include "ops/image_rules.h"
#include "ops/pool_rules.h"

namespace taeda::impl {
namespace {

// Whether PyTorch would give results of operators on `t` the channels-last layout: strides grow
// from channels over width and height to the batch, which says nothing where channels and image
// have size one (then the layout is row-major).
bool is_channels_last(const Tensor& t) {
  if (t.dim() != 4 && t.dim() != 5) return false;
  const IntSpan sizes = t.sizes(), strides = t.strides();
  if (strides[1] == 0) return false;
  int64_t least = 0;
  for (size_t i = 0; i < sizes.size(); i++) {
    const size_t d = i == 0 ? 1 : i + 1 == sizes.size() ? 0 : sizes.size() - i;
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d] * std::max<int64_t>(sizes[d], 1);
  }
  return true;
}
bool is_channels_last_image(const Tensor& t) { return t.dim() == 4 && is_channels_last(t); }

Tensor to_volume(const Tensor& image) { return op::permute(image, {0, 2, 3, 1}); }
Tensor to_image(const Tensor& volume) { return op::permute(volume, {0, 3, 1, 2}); }

// The same memory format as `like` for a row-major result: a copy, where no kernel is made for it.
Tensor in_format_of(const Tensor& like, const Tensor& result) {
  if (!is_channels_last(like)) return result;
  return op::contiguous(
      result, like.dim() == 4 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsLast3d);
}

// Sizes along h and w (one number stands for both, none for the default), with that along c.
DimVector with_channel(IntSpan values, int64_t channel) {
  DimVector out(values);
  if (out.size() == 1) out.push_back(out[0]);
  if (!out.empty()) out.push_back(channel);
  return out;
}

// An index in the flattened volume [h, w, c] as one in the plane [h, w].
Tensor plane_indices(const Tensor& indices, int64_t channels) {
  return to_image(
      op::floor_divide(indices, op::full({}, Scalar(channels), TensorOptions(DType::kInt64))));
}

using ValuesAndIndices = std::tuple<Tensor, Tensor>;

Tensor max_pool_volume(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                       IntSpan dilation, bool ceil_mode) {
  return std::get<0>(
      op::_max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, false));
}

}  // namespace

Tensor _in_format_of(const Tensor& like, const Tensor& result) {
  return in_format_of(like, result);
}

// The pooling operators of volumes have casts under autocast that those of images have not.
Tensor max_pool2d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                  IntSpan dilation, bool ceil_mode) {
  if (!is_channels_last_image(input))
    return std::get<0>(
        op::_max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, false));
  rules::pooled("max_pool2d", input.sizes(), 2, kernel_size, stride, padding, dilation, ceil_mode);
  const autocast::Pause outside;
  return to_image(max_pool_volume(to_volume(input), with_channel(kernel_size, 1),
                                  with_channel(stride, 1), with_channel(padding, 0),
                                  with_channel(dilation, 1), ceil_mode));
}

Tensor max_pool3d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                  IntSpan dilation, bool ceil_mode) {
  return in_format_of(input,
                      max_pool_volume(input, kernel_size, stride, padding, dilation, ceil_mode));
}

ValuesAndIndices max_pool2d_with_indices(const Tensor& input, IntSpan kernel_size, IntSpan stride,
                                         IntSpan padding, IntSpan dilation, bool ceil_mode) {
  if (!is_channels_last_image(input))
    return op::_max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode);
  rules::pooled("max_pool2d", input.sizes(), 2, kernel_size, stride, padding, dilation, ceil_mode);
  const autocast::Pause outside;
  const auto [values, indices] = op::_max_pool3d_with_indices(
      to_volume(input), with_channel(kernel_size, 1), with_channel(stride, 1),
      with_channel(padding, 0), with_channel(dilation, 1), ceil_mode);
  return {to_image(values), plane_indices(indices, input.size(1))};
}

Tensor avg_pool2d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                  bool ceil_mode, bool count_include_pad, OptInt divisor_override) {
  if (!is_channels_last_image(input))
    return op::_avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                           divisor_override);
  rules::pooled("avg_pool2d", input.sizes(), 2, kernel_size, stride, padding, {1}, ceil_mode);
  const autocast::Pause outside;
  return to_image(op::avg_pool3d(to_volume(input), with_channel(kernel_size, 1),
                                 with_channel(stride, 1), with_channel(padding, 0), ceil_mode,
                                 count_include_pad, divisor_override));
}

Tensor adaptive_avg_pool2d(const Tensor& input, IntSpan output_size) {
  if (!is_channels_last_image(input)) return op::_adaptive_avg_pool2d(input, output_size);
  rules::adaptive_pooled("adaptive_avg_pool2d", input.sizes(), 2, output_size);
  const autocast::Pause outside;
  return to_image(
      op::adaptive_avg_pool3d(to_volume(input), with_channel(output_size, input.size(1))));
}

ValuesAndIndices adaptive_max_pool2d(const Tensor& input, IntSpan output_size) {
  if (!is_channels_last_image(input)) return op::_adaptive_max_pool2d(input, output_size);
  rules::adaptive_pooled("adaptive_max_pool2d", input.sizes(), 2, output_size);
  const autocast::Pause outside;
  const auto [values, indices] =
      op::adaptive_max_pool3d(to_volume(input), with_channel(output_size, input.size(1)));
  return {to_image(values), plane_indices(indices, input.size(1))};
}

// Volumes are copied; images are resized as volumes [n, 1, h, w, c], where a negative scale says
// that the channels stay.
Tensor _resample_any(const Tensor& input, IntSpan output_size, std::string_view mode,
                     bool align_corners, double scale_d, double scale_h, double scale_w) {
  const bool bytes = input.dtype() == DType::kUInt8 && !mode.starts_with("nearest");
  // PyTorch has another kernel for these.
  if (mode == "nearest" && input.dim() == 5 && is_channels_last(input) && input.size(1) > 3)
    mode = "nearest-whole";
  if (!is_channels_last_image(input) || bytes || output_size.size() != 2) {
    return in_format_of(
        input, op::resample(input, output_size, mode, align_corners, scale_d, scale_h, scale_w));
  }
  rules::resized("interpolate", input.sizes(), 2, output_size);
  const Tensor volume = op::unsqueeze(to_volume(input), 1);
  return to_image(op::squeeze_dim(op::resample(volume, with_channel(output_size, input.size(1)),
                                               mode, align_corners, scale_h, scale_w, -1.0),
                                  {1}));
}

Tensor pad(const Tensor& input, IntSpan pad, std::string_view mode, OptDouble value) {
  if (mode != "constant") {
    TD_CHECK_IMPLEMENTED(mode == "reflect" || mode == "replicate" || mode == "circular",
                         "Unrecognised padding mode {}", mode);
    TD_CHECK(!value || *value == 0, "Padding mode \"{}\" doesn't take in value argument", mode);
    const Tensor padded = op::pad_by_index(input, pad, mode);
    return mode == "circular" ? padded : in_format_of(input, padded);
  }
  const Scalar fill(value.value_or(0));
  if (!is_channels_last_image(input) || pad.size() > 6)
    return in_format_of(input, op::constant_pad_nd(input, pad, fill));
  rules::padded(input.sizes(), pad, mode);
  // pad is (w, h, c) for the image, (c, w, h) for the volume.
  DimVector before_and_after(6, 0);
  for (size_t i = 0; i < pad.size(); i++) before_and_after[(i + 2) % 6] = pad[i];
  return to_image(op::constant_pad_nd(to_volume(input), before_and_after, fill));
}

}  // namespace taeda::impl
