// Work that a thread has been asked for and not given to the driver yet, so that it can be one
// launch with what comes next (kernels/cuda/launch_list.h).
//
// It is launched once, before the thread next calls the driver or changes its stream, so programs
// see no difference. Nothing is put off but between begin_list() and end_list(), which may be
// nested.
#pragma once

namespace taeda::cuda {

void begin_list();
// Launches what is left, and raises what the first launch raised that failed since begin_list().
// RuntimeError where none was begun.
void end_list();
// Whether the thread is between the two.
bool in_list();

// What launches the work; null where there is none.
using Launch = void (*)();
extern constinit thread_local Launch launch_put_off;
// Where it is true the thread holds a lock that a launch may want: it goes on to put off.
extern constinit thread_local bool launch_is_locked;
// For launch_what_is_put_off(): the driver may be called next in a destructor.
void run_put_off() noexcept;
inline void launch_what_is_put_off() noexcept {
  if (launch_put_off && !launch_is_locked) [[unlikely]]
    run_put_off();
}

// Calls `work` between the two. Nothing is left when it returns, whoever has begun a list before:
// what work reads may be freed then.
template <class Work>
void with_list(Work&& work) {
  begin_list();
  try {
    work();
  } catch (...) {
    end_list();
    throw;
  }
  launch_what_is_put_off();
  end_list();
}

}  // namespace taeda::cuda
