// Calls of Python that tell Valgrind's callgrind where a measurement begins and ends; without
// Valgrind they do nothing. bench/instructions.py compiles it and calls it through ctypes.

#include <valgrind/callgrind.h>

extern "C" void start_counting() {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

extern "C" void stop_counting(const char* name) {
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
}
