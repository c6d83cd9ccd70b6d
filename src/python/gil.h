// The GIL: the one place where the bindings give it away and take it again.
//
// Once the interpreter is being finalized, CPython ends every other thread that asks for the GIL
// with pthread_exit (until 3.13), which unwinds the stack through whatever C++ frames are there:
// destructors, noexcept functions and catch (...) clauses, which abort the process. A thread that
// would end so is parked instead: it sleeps until the process is gone.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

#include "taeda/keys.h"

namespace taeda::python {

[[noreturn]] void park_thread() noexcept;
// For catch (...) around Python's C API: parks a thread that is being ended so. What unwinds it is
// no C++ exception (a clause for abi::__forced_unwind& binds a null reference).
void park_if_ended() noexcept;
// PyEval_RestoreThread and PyGILState_Ensure for threads that may be late.
void restore_thread(PyThreadState* state);
PyGILState_STATE ensure_gil();

// Lets other Python threads run until the end of the scope, when `release` is true.
class GilRelease {
 public:
  explicit GilRelease(bool release = true) {
    if (release) begin();
  }
  ~GilRelease() {
    if (state_) end();
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  friend void look_for_signals();
  void begin();
  void end() noexcept;

  PyThreadState* state_ = nullptr;
  GilRelease* outer_ = nullptr;
  ThreadModes modes_;  // the program's, before layers of operators changed them
};

// Tensors with fewer elements are not worth giving the GIL away for.
inline constexpr int64_t kLargeElements = 32768;

// Runs `call` and returns its result, without the GIL when `release` is true.
template <class F>
auto unlocked_if(bool release, F&& call) {
  if (!release) [[likely]]
    return call();
  GilRelease gil;
  return call();
}

// Holds the GIL until the end of the scope, on any thread.
class GilAcquire {
 public:
  GilAcquire();
  ~GilAcquire();
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
  GilRelease* const released_;
};

// The hook of base/interrupt.h: runs the handlers of the signals that have arrived, on the main
// thread; on others it looks for what has been raised there asynchronously. Throws PythonException
// where there is an exception.
void look_for_signals();

}  // namespace taeda::python
