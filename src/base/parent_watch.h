// end_with_process(): a process that must not outlive another one, such as the worker of a trainer.
//
// A thread without Python sleeps until that process has ended, in whatever way, and then kills its
// own process. PR_SET_PDEATHSIG would not do: it follows the thread that started the process, and
// a process of a fork server is the server's child. The thread takes one signal and costs nothing
// while it sleeps on a pidfd; on systems without those, or when no descriptor is left, it looks
// five times a second.
#pragma once

#include <sys/types.h>

namespace taeda {

// From now on this process is killed (SIGKILL) once `pid` has ended; at once if it has already.
// Does nothing when asked again for the same process. Children that this process forks have no such
// watch. ValueError for numbers that can be no other process's; RuntimeError when no thread can be
// started. Any thread may call it.
void end_with_process(pid_t pid);
// How many threads of this process do that.
int watching_threads();
// The signal that those threads take. Where the others block it, its handler runs in one of them
// and interrupts no system call of the program.
int watch_signal();

}  // namespace taeda
