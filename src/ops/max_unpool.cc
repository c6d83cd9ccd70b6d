// max_unpool: values back to where max_pool found them.
#include <charconv>

#include "core/strides.h"
#include "op/contiguous.h"
#include "op/new_zeros.h"
#include "op/reshape.h"
#include "op/scatter.h"
#include "op/view.h"
#include "ops/device_bounds.h"
#include "ops/expr.h"
#include "ops/pool_rules.h"

namespace taeda {

DimVector rules::unpooled(IntSpan in, IntSpan kernel, const OptInts& stride, IntSpan padding,
                          const OptInts& output_size) {
  const IntSpan steps = stride.value_or(kernel),
                spatial = in.slice(in.size() - kernel.size(), kernel.size());
  DimVector least(kernel.size());
  for (size_t d = 0; d < kernel.size(); d++)
    least[d] = expr::sub(expr::add(expr::mul(spatial[d] - 1, steps[d]), kernel[d]),
                         expr::mul(int64_t{2}, padding[d]));
  if (!output_size) return least;
  const bool whole = output_size->size() == kernel.size() + 2;
  const DimVector asked(whole ? output_size->slice(2, kernel.size()) : *output_size);
  TD_CHECK_VALUE(asked.size() == kernel.size(),
                 "output_size should be a sequence containing {} or {} elements, but it has a "
                 "length of '{}'",
                 static_cast<int64_t>(kernel.size()), static_cast<int64_t>(kernel.size() + 2),
                 static_cast<int64_t>(asked.size()));
  for (size_t d = 0; d < asked.size(); d++) {
    const int64_t low = expr::sub(least[d], steps[d]), high = expr::add(least[d], steps[d]);
    TD_CHECK_VALUE(low < asked[d] && asked[d] < high,
                   "invalid output_size '{}' (dim {} must be between {} and {})", asked,
                   static_cast<int64_t>(d), low, high);
  }
  return asked;
}

namespace impl {

namespace {

// The error of an index that scatter has refused, in the words of unpooling.
[[noreturn]] void fail_of_index(const Error& error, IntSpan sizes, int64_t volume) {
  constexpr std::string_view kBefore = "index ";
  const std::string_view text = error.what();
  int64_t index = 0;
  if (!text.starts_with(kBefore) ||
      std::from_chars(text.data() + kBefore.size(), text.data() + text.size(), index).ec !=
          std::errc())
    throw;
  std::string shown = std::to_string(sizes[0]);
  for (size_t d = 1; d < sizes.size(); d++) shown += format("x{}", sizes[d]);
  fail(ErrorKind::kRuntime,
       "Found an invalid max index: {} (output volumes are of size {})\nFix: indices run from 0 to "
       "{}",
       index, sizes.size() > 1 ? shown : shown + "x1", volume - 1);
}

}  // namespace

Tensor _max_unpool(const Tensor& input, const Tensor& indices, IntSpan output_size) {
  TD_CHECK(!output_size.empty() && output_size.size() <= input.sizes().size(),
           "_max_unpool: expected sizes for dimensions of the input of size {}, got {}",
           input.sizes(), output_size);
  const size_t leading = input.sizes().size() - output_size.size();
  DimVector flat(input.sizes().slice(0, leading)), sizes = flat;
  const int64_t volume = checked_numel(output_size);
  flat.push_back(volume);
  for (const int64_t size : output_size) sizes.push_back(size);
  DimVector row = flat;
  row.back() = checked_numel(input.sizes().slice(leading, output_size.size()));
  const std::string invalid = format("max_unpool{}d(): Found an invalid max index: ",
                                     static_cast<int64_t>(output_size.size())) +
                              "{} (output volumes have {} elements)";
  const Tensor index = op::reshape(indices, row), values = op::reshape(input, row);
  on_device::checks_indices(index, volume, {invalid, {}, ErrorKind::kRuntime});
  Tensor filled;
  try {
    filled = op::scatter_src(op::new_zeros(input, flat, {}), -1, index, values);
  } catch (const Error& error) {
    fail_of_index(error, output_size, volume);
  }
  const Tensor out = op::view(filled, sizes);
  const bool last = output_size.size() == 2 && input.dim() == 4 && !input.is_contiguous() &&
                    input.is_contiguous(MemoryFormat::kChannelsLast);
  return last ? op::contiguous(out, MemoryFormat::kChannelsLast) : out;
}

}  // namespace impl

}  // namespace taeda
