// Whether kernels for which a slower way gives the same bits each time take it:
// torch.use_deterministic_algorithms. A setting of the process, False at first.
#pragma once

#include <atomic>

namespace taeda::cuda {

extern std::atomic<bool> deterministic;

}  // namespace taeda::cuda
