// constant_pad_nd (text/inside.cuh). `pad` holds the counts before and after, the last dimension's
// first; negative counts crop.
#include <algorithm>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/inside.h"
#include "kernels/optional.h"

namespace taeda::cuda {
namespace {

// More dimensions than there are counters: a number, and what shows of x over it.
void pad_by_parts(const View& out, const View& x, IntSpan pad, const Scalar& value) {
  fill(out, value);
  View inner = out, shown = x;
  DimVector sizes(x.sizes);
  const int64_t bytes = item_size(x.dtype);
  int64_t to = 0, from = 0;
  for (size_t i = 0; i < pad.size() / 2; i++) {
    const size_t d = sizes.size() - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    sizes[d] += std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    if (sizes[d] <= 0) return;
    to += std::max<int64_t>(before, 0) * out.strides[d] * bytes;
    from += std::max<int64_t>(-before, 0) * x.strides[d] * bytes;
  }
  inner.data = static_cast<char*>(out.data) + to;
  shown.data = static_cast<char*>(x.data) + from;
  inner.sizes = shown.sizes = sizes;
  inner.numel = 1;
  for (const int64_t s : sizes) inner.numel *= s;
  shown.numel = inner.numel;
  if (inner.numel > 0) copy(inner, shown);
}

}  // namespace

void constant_pad_nd(const View& out, const View& x, IntSpan pad, const Scalar& value) {
  if (out.numel == 0) return;
  if (x.numel == 0) return fill(out, value);
  if (pad.size() > 2 * device::kBounds) return pad_by_parts(out, x, pad, value);
  Inside inside(out, x, value);
  int64_t shift = 0;
  for (size_t d = 0; d < x.sizes.size(); d++) {
    const size_t counter = x.sizes.size() - 1 - d;
    if (2 * counter >= pad.size()) {
      inside.add();
      continue;
    }
    const int64_t before = pad[2 * counter];
    inside.bound(static_cast<int>(counter), before, before + x.sizes[d]);
    inside.add(static_cast<int>(counter), 1);
    shift -= before * x.strides[d];
  }
  inside.run(shift);
}

}  // namespace taeda::cuda
