// Kernels by name, and their launch on a device's current stream.
//
// The text of the kernels is in kernels/cuda/text; what the driver loads of them is found by
// modules.h. Launching waits for nothing.
#pragma once

#include <string>

#include "device/api.h"
#include "taeda/small_vector.h"

namespace taeda::cuda {

inline constexpr unsigned kThreadsPerBlock = 128;  // a guess, measured on no card

// Runs kernel `name` in at least one thread for each of `work` pieces, or in as many as the device
// runs at a time: kernels go on with the next piece by themselves. `args` is the kernel's argument.
// RuntimeError where no kernel has the name. `accesses`: all that it reads and writes.
void launch(int device, const std::string& name, int64_t work, void* args,
            Span<const Access> accesses);

}  // namespace taeda::cuda
