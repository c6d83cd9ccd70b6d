// Shape rules of ops/image.yaml.
#pragma once

#include "taeda/tensor.h"

namespace taeda::rules {

// Sizes after padding; checks the list and, for modes that copy elements of the tensor, that there
// are enough.
DimVector padded(IntSpan in, IntSpan pad, std::string_view mode);
DimVector negated(IntSpan values);
// Sizes of resized images: batch and channels, then output_size.
DimVector resized(std::string_view name, IntSpan in, int64_t spatial, IntSpan output_size);
// im2col's (n, c * kernel, windows) and col2im's (n, c, h, w), with or without the batch dimension.
DimVector im2col_sizes(IntSpan in, IntSpan kernel, IntSpan dilation, IntSpan padding,
                       IntSpan stride);
DimVector col2im_sizes(IntSpan in, IntSpan output_size, IntSpan kernel, IntSpan dilation,
                       IntSpan padding, IntSpan stride);
// A scale factor as a number: 0 where it was not given.
inline double scale(OptDouble value) { return value.value_or(0); }

}  // namespace taeda::rules
