// The simulated driver as the rest of taeda meets it: a library of its own (libtaeda_sim.so) that
// is opened when TAEDA_CUDA asks for it. Tests link it or open it themselves, for what no real
// driver offers: kernels written in C++, planned faults, the schedule, counters.
#pragma once

#include "device/sim/simulator.h"

namespace taeda::sim {

// The simulator behind the driver's calls; made with `options` if there is none yet.
Simulator& simulator(const Options& options = {});

// Calls `use` on it with its lock held, as the driver's calls do; returns their status.
cuda::Status with_simulator(const std::function<void(Simulator&)>& use);

}  // namespace taeda::sim

extern "C" {

// The driver's calls, with so many devices; TAEDA_SIM_SCHEDULE is the seed of the order that work
// runs in (0: as late as possible, 1: as early).
const taeda::cuda::DeviceApi* taeda_sim_api(int devices);

// For tests in Python, through ctypes.
void taeda_sim_fail_allocation(int64_t nth);
void taeda_sim_fail_launch(int64_t nth);
void taeda_sim_set_schedule(uint64_t seed);
int64_t taeda_sim_count(
    const char* what);  // "launches", "copies", "synchronizations", "allocations", "host_ns",
                        // "images": of kernels, which were given to the driver
// How often a kernel of the emulator has run, to its end.
int64_t taeda_sim_runs(const char* kernel);
// A kernel that adds `value` to n floats on a stream; the driver's status.
int taeda_sim_add(void* stream, void* values, int64_t n, float value);
// A kernel that does nothing for so long, as far as anybody can tell with `n` ranges of memory, of
// which the first `reads` are read and the others written; the driver's status.
int taeda_sim_launch(void* stream, const char* name, int64_t device_ns, const void* const* begins,
                     const int64_t* bytes, int n, int reads);
// The host does something else for so long.
void taeda_sim_host_works(const char* name, int64_t ns);
// A log of what takes time: started anew, or ended; written as JSON, a list of
// [name, host begin, host end, stream, begin, end, bytes] in nanoseconds. False where it cannot be.
void taeda_sim_keep_log(int on);
bool taeda_sim_write_log(const char* path);
// The host looks at memory or, if `writes`, changes it; the driver's status.
int taeda_sim_host_touches(const void* p, int64_t bytes, int writes);
}
