// Each kernel here lacks what would order its threads; the lines that the thread sanitizer should
// name end in "race: " and the kernel's name (tests/device/test_emulator.py).
#include <vector>

#include "device/emulator/races/kernels.h"
#include "device/emulator/races/run.h"

namespace taeda::races {
namespace {

// Warps leave their sums in shared memory, and the first thread adds them up, whenever that may be.
void no_barrier(const float* x, float* y) {
  TD_SHARED(float, part, 4);
  float s = x[threadIdx.x];
  for (int bits = 16; bits > 0; bits /= 2) s += __shfl_xor_sync(0xffffffffu, s, bits);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;             // race: no_barrier
  if (threadIdx.x == 0) *y = part[0] + part[1] + part[2] + part[3];  // race: no_barrier
}

// A tile is filled anew while others may still read it.
void no_second_barrier(const float* x, float* y) {
  TD_SHARED(float, tile, 128);
  float s = 0;
  for (int round = 0; round < 2; round++) {
    tile[threadIdx.x] = x[threadIdx.x];  // race: no_second_barrier
    __syncthreads();
    s += tile[127 - threadIdx.x];  // race: no_second_barrier
  }
  y[threadIdx.x] = s;
}

// Lanes of a warp read what others write, as if warps went in lockstep.
void no_warp_barrier(const float* x, float* y) {
  TD_SHARED(float, lanes, 128);
  lanes[threadIdx.x] = x[threadIdx.x];       // race: no_warp_barrier
  y[threadIdx.x] = lanes[threadIdx.x ^ 1u];  // race: no_warp_barrier
}

// Blocks add to the same element.
void no_atomic(const float* x, float* y) {
  if (threadIdx.x == 0) *y += *x;  // race: no_atomic
}

struct Planted {
  const char* name;
  void (*kernel)(const float* x, float* y);
};
constexpr Planted kAll[] = {{"no_barrier", no_barrier},
                            {"no_second_barrier", no_second_barrier},
                            {"no_warp_barrier", no_warp_barrier},
                            {"no_atomic", no_atomic}};

}  // namespace

bool run_planted(const std::string& name) {
  for (const Planted& planted : kAll) {
    if (name != planted.name) continue;
    const std::vector<float> x(128, 0.5f);
    std::vector<float> y(128);
    emulator::launch({2}, {128}, 0, 1, [&] {
      if (planted.kernel == no_atomic || blockIdx.x == 0) planted.kernel(x.data(), y.data());
    });
    return true;
  }
  return false;
}

}  // namespace taeda::races
