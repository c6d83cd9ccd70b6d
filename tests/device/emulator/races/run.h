// Runs a kernel by its name, in the emulator.
#pragma once

#include "device/emulator/emulator.h"

namespace taeda::races {

template <class Args>
void run(const char* name, dim3 grid, dim3 block, const Args& args) {
  const emulator::Kernel* const kernel = emulator::Kernel::find(name);
  emulator::launch(grid, block, 0, 1, [&] { kernel->run(&args); });
}

}  // namespace taeda::races
