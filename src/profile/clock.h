// A clock for short intervals: the processor's counter of cycles where it runs at one rate on all
// cores, which costs a third of what asking the system does, else the system's steady clock.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace taeda::profile {

inline int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

#if defined(__x86_64__)
// "Invariant TSC", Intel's and AMD's manuals: leaf 0x80000007, bit 8 of EDX.
inline bool has_constant_counter() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
}
inline const bool constant_counter = has_constant_counter();
inline int64_t ticks() { return constant_counter ? static_cast<int64_t>(__rdtsc()) : steady_ns(); }
#else
inline int64_t ticks() { return steady_ns(); }
#endif

// The steady clock's time of counts between two moments at which both clocks were read.
class Timeline {
 public:
  struct Moment {
    int64_t ticks = profile::ticks(), ns = steady_ns();
  };
  Timeline(Moment first, Moment last)
      : first_(first),
        ns_per_tick_(last.ticks > first.ticks ? static_cast<double>(last.ns - first.ns) /
                                                    static_cast<double>(last.ticks - first.ticks)
                                              : 1.0) {}
  int64_t ns(int64_t ticks) const {
    return first_.ns +
           static_cast<int64_t>(static_cast<double>(ticks - first_.ticks) * ns_per_tick_);
  }

 private:
  Moment first_;
  double ns_per_tick_;
};

}  // namespace taeda::profile
