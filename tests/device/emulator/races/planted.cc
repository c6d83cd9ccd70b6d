// Each kernel here lacks what would order its threads; the lines that the thread sanitizer should
// name end in "race: " and the kernel's name (tests/device/test_emulator.py). With kOrdered it has
// that, and nothing is named.
#include <vector>

#include "device/emulator/races/kernels.h"
#include "device/emulator/races/run.h"

namespace taeda::races {
namespace {

// Warps leave their sums in shared memory, and the first thread adds them up, whenever that may be.
template <bool kOrdered>
void no_barrier(const float* x, float* y) {
  TD_SHARED(float, part, 4);
  float s = x[threadIdx.x];
  for (int bits = 16; bits > 0; bits /= 2) s += __shfl_xor_sync(0xffffffffu, s, bits);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;  // race: no_barrier
  if constexpr (kOrdered) __syncthreads();
  if (threadIdx.x == 0) *y = part[0] + part[1] + part[2] + part[3];  // race: no_barrier
}

// A tile is filled anew while others may still read it.
template <bool kOrdered>
void no_second_barrier(const float* x, float* y) {
  TD_SHARED(float, tile, 128);
  float s = 0;
  for (int round = 0; round < 2; round++) {
    tile[threadIdx.x] = x[threadIdx.x];  // race: no_second_barrier
    __syncthreads();
    s += tile[127 - threadIdx.x];  // race: no_second_barrier
    if constexpr (kOrdered) __syncthreads();
  }
  y[threadIdx.x] = s;
}

// Lanes of a warp read what others write, as if warps went in lockstep.
template <bool kOrdered>
void no_warp_barrier(const float* x, float* y) {
  TD_SHARED(float, lanes, 128);
  lanes[threadIdx.x] = x[threadIdx.x];  // race: no_warp_barrier
  if constexpr (kOrdered) __syncwarp();
  y[threadIdx.x] = lanes[threadIdx.x ^ 1u];  // race: no_warp_barrier
}

// Blocks add to the same element.
template <bool kOrdered>
void no_atomic(const float* x, float* y) {
  if (threadIdx.x != 0) return;
  if constexpr (kOrdered)
    atomicAdd(y, *x);
  else
    *y += *x;  // race: no_atomic
}

struct Planted {
  const char* name;
  void (*kernel)(const float* x, float* y);
  void (*ordered)(const float* x, float* y);
  unsigned blocks = 1;
};
constexpr Planted kAll[] = {
    {"no_barrier", no_barrier<false>, no_barrier<true>},
    {"no_second_barrier", no_second_barrier<false>, no_second_barrier<true>},
    {"no_warp_barrier", no_warp_barrier<false>, no_warp_barrier<true>},
    {"no_atomic", no_atomic<false>, no_atomic<true>, 2}};

}  // namespace

bool run_planted(const std::string& name, bool ordered) {
  for (const Planted& planted : kAll) {
    if (name != planted.name) continue;
    const std::vector<float> x(128, 0.5f);
    std::vector<float> y(128);
    const auto kernel = ordered ? planted.ordered : planted.kernel;
    emulator::launch({planted.blocks}, {128}, 0, 1, [&] { kernel(x.data(), y.data()); });
    return true;
  }
  return false;
}

}  // namespace taeda::races
