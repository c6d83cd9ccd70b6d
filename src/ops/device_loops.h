// What a device knows a functor's loops by: its kernels have names (tools/cuda_units.py), the CPU's
// a table.
#pragma once

#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cuda/pointwise.h"

namespace taeda {

struct DeviceLoop {
  const DenseTable& (*table)();
  cuda::Loop loop;
};

// All of them; generated.
Span<const DeviceLoop> device_loops();
// That of a table which device_loops() has.
const cuda::Loop& device_loop(const DenseTable& table);

}  // namespace taeda
