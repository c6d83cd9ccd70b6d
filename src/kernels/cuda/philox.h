// What a kernel that draws random numbers takes of a device's generator.
#pragma once

#include "device/api.h"
#include "kernels/cuda/text/random_args.h"
#include "kernels/view.h"
#include "taeda/generator.h"

namespace taeda::cuda {

// PyTorch's kernels run in blocks of 256 threads, and on each multiprocessor in as many as fit:
// that decides which thread has which numbers.
struct Deal {
  int64_t threads;
  uint64_t draws;  // of each thread, at most
};
// n elements, `per_draw` of them from each draw of a thread.
Deal deal(int device, int64_t n, int64_t per_draw);

// The state for a kernel that fills `out` and whose threads use up to `words` words each: the
// generator goes on behind them, which locks it.
device::PhiloxState take(Generator& generator, const View& out, uint64_t words);
// What such a kernel reads for it: in graphs, the memory that replays set.
Access access(const device::PhiloxState& state);

}  // namespace taeda::cuda
