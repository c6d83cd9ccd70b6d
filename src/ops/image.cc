// Shape rules of ops/image.yaml.
#include <algorithm>

#include "ops/expr.h"
#include "ops/image_rules.h"

namespace taeda {

namespace rules {

constexpr const char* kPaddingSizes =
    "Padding size {} is not supported for {}D input tensor.\nSupported combinations for "
    "non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or "
    "4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding size = 6 "
    "(pads last 3 dimensions)";

DimVector padded(IntSpan in, IntSpan pad, std::string_view mode) {
  const size_t n = in.size(), count = pad.size() / 2;
  TD_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals {}",
           static_cast<int64_t>(pad.size()));
  TD_CHECK(count <= n,
           "Length of pad should be no more than twice the number of dimensions of the input. Pad "
           "length is {} while the "
           "input has {} dimensions.",
           static_cast<int64_t>(pad.size()), static_cast<int64_t>(n));
  const bool constant = mode == "constant";
  if (!constant) {
    TD_CHECK_IMPLEMENTED(count >= 1 && count <= 3 && (n == count + 1 || n == count + 2),
                         kPaddingSizes, static_cast<int64_t>(pad.size()), static_cast<int64_t>(n));
  }
  DimVector out(in);
  for (size_t i = 0; i < count; i++) {
    const size_t d = n - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1], size = in[d];
    const int64_t kept =
        expr::add(expr::add(size, std::min<int64_t>(before, 0)), std::min<int64_t>(after, 0));
    TD_CHECK(!constant || kept >= 0,
             "narrow(): length must be non-negative.\npad {} crops more than the size {} of "
             "dimension {}",
             pad, size, static_cast<int64_t>(d));
    out[d] = expr::add(expr::add(size, before), after);
    TD_CHECK(out[d] >= 0,
             "The input size {}, plus negative padding {} and {} resulted in a negative output "
             "size, which is invalid. "
             "Check dimension {} of your input.",
             size, before, after, static_cast<int64_t>(d));
    if (constant) continue;
    if (mode == "reflect") {
      TD_CHECK(before < size && after < size,
               "Argument #4: Padding size should be less than the corresponding input dimension, "
               "but got: padding ({}, {}) "
               "at dimension {} of input {}",
               before, after, static_cast<int64_t>(d), in);
    } else if (mode == "circular") {
      TD_CHECK(before <= size && after <= size,
               "Padding value causes wrapping around more than once.");
    }
    TD_CHECK(size > 0 && out[d] > 0,
             "pad: expected input with non-zero sizes to pad by '{}', but got input of size {} and "
             "pad {}",
             mode, in, pad);
    TD_CHECK(mode == "replicate" || std::min(before, after) > -size,
             "pad: padding {} crops all of dimension {} of input {}", pad, static_cast<int64_t>(d),
             in);
  }
  return out;
}

DimVector negated(IntSpan values) {
  DimVector out;
  for (const int64_t v : values) out.push_back(expr::sub(0, v));
  return out;
}

DimVector resized(std::string_view name, IntSpan in, int64_t spatial, IntSpan output_size) {
  const size_t n = static_cast<size_t>(spatial);
  TD_CHECK(output_size.size() == n, "{}: It is expected output_size equals to {}, but got size {}",
           name, spatial, static_cast<int64_t>(output_size.size()));
  TD_CHECK(in.size() == n + 2, "{}: It is expected input_size equals to {}, but got size {}", name,
           spatial + 2, static_cast<int64_t>(in.size()));
  DimVector out{in[0], in[1]};
  for (size_t i = 0; i < n; i++) {
    TD_CHECK(in[i + 2] > 0 && output_size[i] > 0,
             "Input and output sizes should be greater than 0, but got input {} and output_size {}",
             in, output_size);
    out.push_back(output_size[i]);
  }
  return out;
}

namespace {

int64_t item(IntSpan values, size_t i) { return values.size() == 1 ? values[0] : values[i]; }

// "(3, 3)", also of one value that stands for both.
std::string pair(IntSpan values) { return format("({}, {})", item(values, 0), item(values, 1)); }

// How many windows fit into an image of two dimensions; checks the geometry.
int64_t windows(std::string_view name, IntSpan image, IntSpan kernel, IntSpan dilation,
                IntSpan padding, IntSpan stride) {
  for (const IntSpan values : {kernel, dilation, padding, stride})
    TD_CHECK(values.size() == 1 || values.size() == 2, "{}: expected one or two values, but got {}",
             name, values);
  DimVector blocks;
  for (size_t i = 0; i < 2; i++) {
    const int64_t k = item(kernel, i), d = item(dilation, i), p = item(padding, i),
                  s = item(stride, i);
    TD_CHECK(k > 0, "{}: kernel size should be greater than zero, but got {}", name, kernel);
    TD_CHECK(d > 0, "{}: dilation should be greater than zero, but got {}", name, dilation);
    TD_CHECK(p >= 0, "{}: padding should be non-negative, but got {}", name, padding);
    TD_CHECK(s > 0, "{}: stride should be greater than zero, but got {}", name, stride);
    const int64_t reach =
        expr::sub(expr::add(image[i], expr::mul(2, p)), expr::add(expr::mul(d, k - 1), 1));
    blocks.push_back(expr::add(expr::floor_divide(reach, s), 1));
  }
  TD_CHECK(blocks[0] > 0 && blocks[1] > 0,
           "Given {} {}, kernel_size={}, dilation={}, padding={}, calculated shape of the array of "
           "sliding blocks as {}, but its components must be at least one.",
           name == "fold" ? "output_size" : "input with spatial size", pair(image), pair(kernel),
           pair(dilation), pair(padding), pair(blocks));
  return expr::mul(blocks[0], blocks[1]);
}

}  // namespace

DimVector im2col_sizes(IntSpan in, IntSpan kernel, IntSpan dilation, IntSpan padding,
                       IntSpan stride) {
  TD_CHECK(in.size() == 3 || in.size() == 4,
           "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
           "dimensions for input, but got: {}",
           in);
  for (size_t i = in.size() - 3; i < in.size(); i++)
    TD_CHECK(in[i] > 0,
             "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
             "dimensions for input, but got: {}",
             in);
  const size_t n = in.size();
  const int64_t count = windows("unfold", in.slice(n - 2, 2), kernel, dilation, padding, stride);
  DimVector out(in.begin(), in.begin() + (n - 3));
  out.push_back(expr::mul(expr::mul(in[n - 3], item(kernel, 0)), item(kernel, 1)));
  out.push_back(count);
  return out;
}

DimVector col2im_sizes(IntSpan in, IntSpan output_size, IntSpan kernel, IntSpan dilation,
                       IntSpan padding, IntSpan stride) {
  TD_CHECK(in.size() == 2 || in.size() == 3,
           "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
           "non-zero dimensions for input, but got: {}",
           in);
  TD_CHECK(output_size.size() == 1 || output_size.size() == 2,
           "fold: expected one or two values of output_size, but got {}", output_size);
  const DimVector image{item(output_size, 0), item(output_size, 1)};
  const int64_t count = windows("fold", image, kernel, dilation, padding, stride);
  const size_t n = in.size();
  const int64_t area = expr::mul(item(kernel, 0), item(kernel, 1));
  TD_CHECK(in[n - 2] > 0 && in[n - 2] % area == 0,
           "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
           "but got input.size(1)={} "
           "and kernel_size={}.",
           in[n - 2], kernel);
  TD_CHECK(in[n - 1] == count,
           "Given output_size={}, kernel_size={}, dilation={}, padding={}, stride={}, expected "
           "size of input's dimension 2 "
           "to match the calculated number of sliding blocks {}, but got input.size(2)={}.",
           output_size, kernel, dilation, padding, stride, count, in[n - 1]);
  DimVector out(in.begin(), in.begin() + (n - 2));
  for (const int64_t v : {in[n - 2] / area, image[0], image[1]}) out.push_back(v);
  return out;
}

}  // namespace rules

}  // namespace taeda
