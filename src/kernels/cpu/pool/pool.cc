#include "kernels/cpu/pool/pool.h"

#include <algorithm>
#include <string>

#include "taeda/error.h"

namespace taeda::cpu {

namespace {

int64_t item(IntSpan values, size_t i) { return values.size() == 1 ? values[0] : values[i]; }

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

}  // namespace

PoolShape pool_shape(IntSpan in, IntSpan out, IntSpan kernel, IntSpan stride, IntSpan padding,
                     IntSpan dilation) {
  PoolShape s;
  Windows* const dims[] = {&s.d, &s.h, &s.w};
  const size_t n = kernel.size(), leading = in.size() - n;
  for (size_t i = 0; i < leading; i++) s.planes *= in[i];
  for (size_t i = 0; i < n; i++) {
    *dims[3 - n + i] = {in[leading + i],  out[leading + i],
                        kernel[i],        stride.empty() ? kernel[i] : item(stride, i),
                        item(padding, i), item(dilation, i)};
    const Windows& w = *dims[3 - n + i];
    for (int64_t o = 0; w.dilation > 1 && o < w.out; o++)
      s.has_empty_windows = s.has_empty_windows || w.first(o) >= w.last(o);
  }
  return s;
}

int64_t plane_grain(const PoolShape& s) {
  if (s.planes == 0) return 1;  // the sizes of planes that are not there may be anything
  return std::max<int64_t>(1,
                           (int64_t{1} << 15) / std::max<int64_t>(1, s.in_size() + s.out_size()));
}

namespace {
// "3x4x4"
std::string times(IntSpan sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}
}  // namespace

DimVector pool_sizes(std::string_view name, IntSpan in, int64_t spatial, IntSpan kernel,
                     IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode) {
  const size_t n = static_cast<size_t>(spatial);
  TD_CHECK(in.size() == n + 1 || in.size() == n + 2,
           "{}: Expected {}D or {}D (batch mode) tensor for input, but got {}", name, spatial + 1,
           spatial + 2, in);
  const auto check_length = [&](IntSpan values, const char* what, bool may_be_empty) {
    TD_CHECK(values.size() == 1 || values.size() == n || (may_be_empty && values.empty()),
             "{}: {} must either be {}a single int, or a tuple of {} ints", name, what,
             may_be_empty ? "omitted, " : "", spatial);
  };
  TD_CHECK(kernel.size() == n, "{}: kernel_size must either be a single int, or a tuple of {} ints",
           name, spatial);
  check_length(stride, "stride", true);
  check_length(padding, "padding", false);
  check_length(dilation, "dilation", false);
  DimVector out(in);
  const size_t leading = in.size() - n;
  for (size_t i = in.size() == n + 1 ? 0 : 1; i < in.size(); i++) {
    TD_CHECK(in[i] > 0,
             "{}: Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for "
             "input, but got {}",
             name, spatial + 1, spatial + 2, in);
  }
  for (size_t i = 0; i < n; i++) {
    const int64_t k = item(kernel, i), s = stride.empty() ? k : item(stride, i),
                  p = item(padding, i), d = item(dilation, i);
    TD_CHECK(k > 0, "{}: kernel size should be greater than zero, but got {}", name, kernel);
    TD_CHECK(s > 0, "{}: stride should be greater than zero, but got {}", name, stride);
    TD_CHECK(d > 0, "{}: dilation should be greater than zero, but got dilation {}", name,
             dilation);
    TD_CHECK(p >= 0, "pad must be non-negative, but got pad: {}", p);
    int64_t span;
    TD_CHECK(!__builtin_mul_overflow(d, k - 1, &span) && span < (int64_t{1} << 62),
             "{}: the window of kernel size {} and dilation {} is too long", name, k, d);
    TD_CHECK(name != "max_pool1d" || p <= k / 2,
             "max_pool1d() padding should be at most half of kernel size, but got padding={} and "
             "kernel_size={}",
             p, k);
    TD_CHECK(
        p <= (span + 1) / 2,
        "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and "
        "dilation={}",
        p, k, d);
    TD_CHECK(spatial == 1 || p <= k / 2,
             "pad should be smaller than or equal to half of kernel size, but got pad={}, "
             "kernel_size={}",
             padding, kernel);
    const int64_t size = in[leading + i], reach = size + 2 * p - span - 1;
    int64_t count = (ceil_mode ? -floor_div(-reach, s) : floor_div(reach, s)) + 1;
    // The last window starts inside the input or its left padding.
    if (ceil_mode && (count - 1) > (size + p - 1) / s) count--;
    out[leading + i] = count;
  }
  for (size_t i = 0; i < n; i++) {
    TD_CHECK(name != "max_pool1d" || out[leading + i] > 0,
             "max_pool1d() Invalid computed output size: {}", out[leading + i]);
    TD_CHECK(out[leading + i] > 0,
             "Given input size: ({}). Calculated output size: ({}). Output size is too small",
             times(in.slice(leading - 1, n + 1)), times(IntSpan(out).slice(leading - 1, n + 1)));
  }
  return out;
}

}  // namespace taeda::cpu
