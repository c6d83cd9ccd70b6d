#include "kernels/cuda/text/inside.cuh"

namespace taeda::device {

TD_BY_SIZE(inside, InsideArgs, inside_kernel)

}  // namespace taeda::device
