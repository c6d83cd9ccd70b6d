#include "kernels/cuda/text/optim.cuh"

namespace taeda::device {

#define TD_OPTIM(type, S, T)                                                        \
  TD_GLOBAL(optim_sgd_##type##_any, OptimArgs<SgdRule>, optim_kernel<S, T, Sgd>)    \
  TD_GLOBAL(optim_adam_##type##_any, OptimArgs<AdamRule>, optim_kernel<S, T, Adam>) \
  TD_GLOBAL(optim_rmsprop_##type##_any, OptimArgs<RmspropRule>, optim_kernel<S, T, Rmsprop>) \
  TD_GLOBAL(optim_unscale_##type##_any, OptimArgs<UnscaleRule>, unscale_kernel<S, T>)

TD_OPTIM(f32, float, float)
TD_OPTIM(f16, Half, float)
TD_OPTIM(bf16, BFloat16, float)
TD_OPTIM(f64, double, double)
TD_GLOBAL(optim_add_one_f64_any, AddOneArgs, add_one_kernel)

}  // namespace taeda::device
