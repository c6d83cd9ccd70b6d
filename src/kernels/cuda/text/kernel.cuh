// TD_GLOBAL(name, Args, body): the kernel `name`, which calls body(args) in every thread.
//
// A kernel has one argument: a plain struct of at most 4 KiB, which launchers fill by the same
// definition. NVRTC makes a __global__ function of it; on the host it is a row of the table that
// the emulator (tests/device/emulator) looks in. Everything in this folder is text for both: it
// includes nothing of CUDA's, and of the standard library what std.cuh has.
#pragma once

#if defined(__CUDACC_RTC__)
#define TD_FN __forceinline__ __device__
#include "kernels/cuda/text/std.cuh"
#define TD_SHARED(T, name, n) __shared__ T name[n]
#define TD_GLOBAL(name, Args, ...) \
  extern "C" __global__ void name(const __grid_constant__ Args args) { __VA_ARGS__(args); }
#else
#include "device/emulator/emulator.h"
#define TD_GLOBAL(name, Args, ...)                                                               \
  static const taeda::emulator::Kernel kernel_##name(#name, sizeof(Args), [](const void* args) { \
    __VA_ARGS__(*static_cast<const Args*>(args));                                                \
  });
#endif

#include "kernels/cuda/text/fault.cuh"
