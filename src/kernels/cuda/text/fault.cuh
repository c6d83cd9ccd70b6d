// TD_CHECK in kernels: the first failure is noted in host memory, and the kernel goes on.
//
// The host raises when it next waits for the device (device/fault.h). Nothing traps, so the context
// lives on; who checks goes on with a number that does no harm.
#pragma once
#include "device/fault_code.h"

#if defined(__CUDACC_RTC__)
extern "C" {
__device__ taeda::device::Fault* td_fault;  // set when the module is loaded
}
#endif

namespace taeda::device {

inline void report(uint32_t code) {
  if (td_fault && td_fault->code == 0) atomicCAS(&td_fault->code, 0u, code);
#if !defined(__CUDACC_RTC__)
  emulator::end_thread();  // a device's integers divide by zero without a trap, a CPU's do not
#endif
}
// An index that is not in [0, size); the caller goes on without it. The host, which may wait for
// another stream meanwhile, sees the code when all of the record is there.
inline void report(const BoundsMessage& message, int64_t index, int64_t size) {
  if (!td_fault || td_fault->code != 0 || atomicCAS(&td_fault->code, 0u, kClaimed) != 0) return;
  td_fault->message = message;
  td_fault->index = index;
  td_fault->size = size;
  __threadfence_system();
  *const_cast<volatile uint32_t*>(&td_fault->code) = kOutOfBounds;
}

}  // namespace taeda::device

#undef TD_CHECK
#define TD_CHECK(condition, ...)                                                 \
  do {                                                                           \
    if (!(condition)) ::taeda::device::report(::taeda::device::kDivisionByZero); \
  } while (0)
