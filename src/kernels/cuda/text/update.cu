// Running statistics, r = (1 - m) r + m scale v in double. A thread has an element, which is read
// and written once.
#include "kernels/cuda/text/convert.cuh"
#include "kernels/cuda/text/update_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

TD_FN void move_running_kernel(const MoveRunningArgs& a) {
  for (uint64_t i = first_index(); i < a.n; i += index_step()) {
    char* const at = a.self + static_cast<int64_t>(i) * a.self_stride;
    const char* const from = a.value + static_cast<int64_t>(i) * a.value_stride;
    const double running = load<double>(at, a.self_type), value = load<double>(from, a.value_type);
    store(at, a.self_type, (1 - a.momentum) * running + a.momentum * a.scale * value);
  }
}

TD_GLOBAL(move_running_f64_any, MoveRunningArgs, move_running_kernel)

}  // namespace taeda::device
