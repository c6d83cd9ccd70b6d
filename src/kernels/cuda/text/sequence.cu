#include "kernels/cuda/text/sequence.cuh"

namespace taeda::device {

TD_GLOBAL(sequence_count_i64_any, CountUpArgs, sequence_kernel)
TD_GLOBAL(sequence_steps_f64_any, StepsArgs, sequence_kernel)
TD_GLOBAL(sequence_spaced_f64_any, SpacedArgs, sequence_kernel)
TD_GLOBAL(sequence_powers_f64_any, PowersArgs, sequence_kernel)
TD_GLOBAL(sequence_spaced_c128_any, ComplexSpacedArgs, sequence_kernel)
TD_GLOBAL(sequence_window_f64_any, WindowArgs, sequence_kernel)
TD_GLOBAL(sequence_triangle_i64_any, TriangleArgs, triangle_kernel)

}  // namespace taeda::device
