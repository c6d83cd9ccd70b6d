// CUDA's words for the text of kernels (src/kernels/cuda/text) where g++ compiles it: the kernel
// runs on the CPU, thread by thread, so that it can be tested, and put under sanitizers, where
// there is no card.
//
// A CUDA thread is a fiber of one OS thread: it runs until it ends or waits at a barrier or for its
// warp, then another one runs. Those of a block run warp by warp in a seeded order, each warp as
// far as it can, and blocks one after another in a seeded order: who relies on more than barriers
// promise gets wrong results. Shared memory is NaN at first. What hangs or breaks a device raises
// LaunchError: threads that wait at different barriers, lanes that never arrive, launches beyond
// the hardware's limits.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "device/fault_code.h"
#include "taeda/error.h"

#define TD_FN inline __attribute__((always_inline))
#define __device__
#define __restrict__ __restrict

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;
// The variable that a module has on a device.
extern thread_local taeda::device::Fault* td_fault;

namespace taeda::emulator {

class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `thread` in every thread of the grid.
void launch(dim3 grid, dim3 block, size_t shared_bytes, uint32_t seed,
            const std::function<void()>& thread);

// A kernel by its name.
struct Kernel {
  using Run = void (*)(const void* args);
  Kernel(const char* name, size_t argument_bytes, Run run);
  static const Kernel* find(std::string_view name);  // null: none

  const char* name;
  size_t argument_bytes;
  Run run;
};

// Ends the calling CUDA thread, at a fault of the data that a device goes on after.
[[noreturn]] void end_thread();

// --- what CUDA's words below stand for ---

void barrier(const char* where);
// What lane `source` of the caller's warp gives; all lanes of `mask` must call.
uint64_t exchange(uint32_t mask, uint64_t bits, unsigned source, const char* what);
uint32_t ballot(uint32_t mask, bool bit, const char* what);
unsigned lane();
// A block's memory of that key: bytes of all ones, so floats are NaN. Under the address sanitizer
// what lies around it is poisoned.
void* shared(const void* key, size_t bytes);
void* dynamic_shared();

template <class T>
T shuffle(uint32_t mask, T value, unsigned source, const char* what) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, source % 32, what);
  if (mask >> (source % 32) & 1) std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace taeda::emulator

#define TD_TEXT_OF(x) #x
#define TD_LINE_TEXT(line) TD_TEXT_OF(line)
#define __syncthreads() taeda::emulator::barrier(__FILE__ ":" TD_LINE_TEXT(__LINE__))
#define TD_SHARED(T, name, n)       \
  static const char name##_key = 0; \
  T* const name = static_cast<T*>(taeda::emulator::shared(&name##_key, sizeof(T) * (n)))
#define TD_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(taeda::emulator::dynamic_shared())

template <class T>
T __shfl_sync(uint32_t mask, T value, int source) {
  return taeda::emulator::shuffle(mask, value, static_cast<unsigned>(source), "__shfl_sync");
}
template <class T>
T __shfl_xor_sync(uint32_t mask, T value, int bits) {
  const unsigned source = taeda::emulator::lane() ^ static_cast<unsigned>(bits);
  return taeda::emulator::shuffle(mask, value, source, "__shfl_xor_sync");
}
template <class T>
T __shfl_down_sync(uint32_t mask, T value, unsigned by) {
  const unsigned lane = taeda::emulator::lane(), source = lane + by < 32 ? lane + by : lane;
  return taeda::emulator::shuffle(mask, value, source, "__shfl_down_sync");
}
template <class T>
T __shfl_up_sync(uint32_t mask, T value, unsigned by) {
  const unsigned lane = taeda::emulator::lane(), source = lane >= by ? lane - by : lane;
  return taeda::emulator::shuffle(mask, value, source, "__shfl_up_sync");
}
inline uint32_t __ballot_sync(uint32_t mask, int predicate) {
  return taeda::emulator::ballot(mask, predicate != 0, "__ballot_sync");
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline void __syncwarp(uint32_t mask = 0xffffffffu) {
  taeda::emulator::ballot(mask, false, "__syncwarp");
}
inline void __threadfence_system() { asm volatile("" ::: "memory"); }
template <class T>
T atomicCAS(T* p, T expected, T value) {
  __atomic_compare_exchange(p, &expected, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <class T>
T atomicAdd(T* p, T value) {
  T old;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  for (T next = old + value;
       !__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);)
    next = old + value;
  return old;
}
inline uint32_t __umulhi(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(uint64_t{a} * b >> 32);
}
