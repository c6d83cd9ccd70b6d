#include "kernels/cuda/fft_geometry.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/fft_lengths.h"

namespace taeda::cuda {
namespace {

constexpr uint32_t kManyTransforms = 8;  // of a block: shared memory is padded

device::Divisor by(int64_t n) { return device::divisor(static_cast<uint32_t>(n)); }

}  // namespace

void set_lines(device::FftArgs& args, IntSpan sizes, const FftLines& in, const FftLines& out) {
  WalkPlan<2> walk;
  for (size_t d = 0; d < sizes.size(); d++) walk.add(sizes[d], {in.strides[d], out.strides[d]});
  walk.sort_by(1);
  args.in = in.data, args.out = out.data;
  args.in_stride = in.stride, args.out_stride = out.stride;
  const auto across = [&](int64_t between, int64_t along) {
    return between != 0 && std::abs(between) < std::abs(along);
  };
  const bool columns = args.columns.value > 1;
  args.across_in = columns || across(walk.innermost(0), in.stride);
  args.across_out = columns ? args.before.value > 1 : across(walk.innermost(1), out.stride);
  args.lines = walk.walk();
}

void set_points(device::FftArgs& args, int64_t points, uint32_t capacity) {
  args.points = by(points);
  args.passes = 0;
  int64_t before = 1;
  for (const int64_t radix : radices_of(points)) {
    args.pass[args.passes++] = {by(points / radix), by(before), static_cast<uint32_t>(radix)};
    before *= radix;
  }
  const auto n = static_cast<uint32_t>(points);
  const bool padded = (args.across_in || args.across_out) && capacity / n >= kManyTransforms;
  args.pitch = padded ? n | 1 : n;
  args.tile = device::divisor(capacity / args.pitch);
  args.transforms = args.lines.count * args.columns.value;
  args.wide = args.transforms > INT32_MAX;
  args.tiles = (args.transforms + args.tile.value - 1) / args.tile.value;
}

}  // namespace taeda::cuda
