// Resizing images of bytes.
#pragma once

#include <array>

#include "kernels/resample_taps.h"
#include "kernels/view.h"

namespace taeda::cuda {

// In fixed point, rounded after each dimension, as the CPU does: along the width, then the height.
void resample_bytes(const View& result, const View& x,
                    const std::array<ResampleAxis<double>, 3>& axes);

}  // namespace taeda::cuda
