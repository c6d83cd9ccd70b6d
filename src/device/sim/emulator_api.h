// Kernels of CUDA run on the CPU by a library of its own, libtaeda_emulator.so
// (tests/device/emulator), which the simulated driver opens when it is asked for a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace taeda::sim {

struct MemoryRange {
  char* begin;
  size_t bytes;
};

struct EmulatedLaunch {
  unsigned grid[3], block[3];
  size_t shared_bytes;
  uint32_t seed;  // of the order of blocks and warps
  void* fault;    // where the word's address is that kernels report to
  // All memory of the devices, and what of it the kernel may touch: under the address sanitizer the
  // rest is poisoned while it runs.
  std::vector<MemoryRange> memory, allowed;
};

struct EmulatorApi {
  const void* (*find)(const char* name);  // null where there is no such kernel
  const void* (*kernel_at)(size_t i);     // in no order; null beyond the last
  const char* (*name)(const void* kernel);
  size_t (*argument_bytes)(const void* kernel);
  bool watches;  // it is built with the address sanitizer
  // Null, or what the kernel did wrong; the text lives until the thread's next call.
  const char* (*run)(const void* kernel, const EmulatedLaunch& launch, const void* argument);
};

// Failure where the library was not built.
const EmulatorApi& emulator();

}  // namespace taeda::sim
