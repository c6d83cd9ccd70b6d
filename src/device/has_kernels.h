// Whether operators have kernels on the CUDA devices in use: all of the operator table's files ask.
#pragma once

namespace taeda::cuda {

// Those of the file beside libtaeda or, for the simulated driver, of the emulator.
bool has_kernels();

}  // namespace taeda::cuda
