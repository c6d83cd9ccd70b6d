// What kernels found wrong in the data: noted in pinned memory, raised when the host waits.
//
// A kernel that divides integers by zero goes on with another divisor, one that is given an index
// out of bounds without it, and the context lives on.
#pragma once

#include "device/fault_code.h"

namespace taeda::cuda {

// Where the device's kernels note it; made at the first call.
device::Fault* fault_word(int device);
// Raises what has been noted first since it last did: RuntimeError for a division by zero, else
// what the launcher said.
void raise_fault(int device);

}  // namespace taeda::cuda
