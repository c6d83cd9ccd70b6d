#include "kernels/cuda/text/grid.cuh"

namespace taeda::device {

#define TD_GRID(type, A)                                                           \
  TD_GLOBAL(grid_sampler_##type##_any, GridArgs, grid_sampler_kernel<A>)           \
  TD_GLOBAL(grid_sampler_grid_##type##_any, GridArgs, grid_sampler_grid_kernel<A>) \
  TD_GLOBAL(grid_sampler_input_##type##_any, GridArgs, grid_sampler_input_kernel<A>)

TD_GRID(f32, float)
TD_GRID(f64, double)

}  // namespace taeda::device
