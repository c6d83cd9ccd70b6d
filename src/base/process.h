// Processes by their number and the time of their start: the system gives a dead one's number to
// another, but not with the same start. Read from /proc, some 20 microseconds a call; safe from any
// thread, and in the child of a fork.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace taeda {

// When the process started, in clock ticks since the system did; 0 when there is none, or it has
// ended and nobody has waited for it yet, and -1 where /proc cannot tell.
int64_t process_start(pid_t pid);

// Whether that process runs still. A process about which /proc says nothing runs if the system
// knows its number.
bool is_running(pid_t pid, int64_t start);

}  // namespace taeda
