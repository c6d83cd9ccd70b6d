#include "kernels/cuda/resample_bytes.h"

#include <cmath>

#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/text/resample_args.h"
#include "kernels/cuda/windows.h"

namespace taeda::cuda {
namespace {

// Bits after the point of 16-bit weights: as many as the largest of an axis allows.
int32_t weight_bits(const ResampleAxis<double>& axis) {
  double largest = 0;
  for (int64_t o = 0; o < axis.out; o++) {
    const ResampleTaps<double> taps = taps_of(axis, o);
    for (int64_t k = 0; k < taps.count; k++)
      largest = std::max(largest, weight_at(axis, taps, position_of(axis, taps, k)));
  }
  int32_t bits = 0;
  while (bits < 22 && std::floor(0.5 + largest * (1 << (bits + 1))) < (1 << 15)) bits++;
  return bits;
}

void resize(const ResampleAxis<double>& axis, const View& result, const View& x, int64_t outer,
            int64_t inner) {
  device::ResampleBytesArgs args{};
  args.axis = axis;
  args.each = planes_of(outer, 1, axis.out, inner);
  args.result = result.as<uint8_t>();
  args.x = x.as<const uint8_t>();
  args.bits = weight_bits(axis);
  launch(x.device.index, "resample_bytes_u8_any", result.numel, &args,
         accesses({&result, 1}, {&x, 1}));
}

}  // namespace

void resample_bytes(const View& result, const View& x,
                    const std::array<ResampleAxis<double>, 3>& axes) {
  const ResampleAxis<double>&rows = axes[1], &columns = axes[2];
  const int64_t planes = x.sizes[0] * x.sizes[1];
  const Dense wide(x.device, DType::kUInt8, {{planes, rows.in, columns.out}});
  resize(columns, wide, x, planes * rows.in, 1);
  resize(rows, result, wide, planes, columns.out);
}

}  // namespace taeda::cuda
