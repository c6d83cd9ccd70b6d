// Moments in which no operator runs, for who moves memory that others may be writing to.
//
// Operators on large tensors run without the GIL, and may write to small ones (`sum(x, out=y)`).
// Who has the GIL while none of them runs excludes all of them: those on small tensors have it too.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace taeda::python {

// Waits until no thread runs an operator, without the GIL, which the caller has before and after;
// none begins while the caller keeps the GIL. An operator that ends lets it go first, so that one
// after the other does not keep it waiting. False after a second in which there was no such moment.
bool wait_for_operators();

// Gives the GIL away until the end of the scope, to wait for something else than an operator.
class GilPause {
 public:
  GilPause();
  ~GilPause();
  GilPause(const GilPause&) = delete;
  GilPause& operator=(const GilPause&) = delete;

 private:
  PyThreadState* const state_;
};

// In the scope of a GilRelease in which the thread waits, and runs no operator.
class OutsideOperators {
 public:
  OutsideOperators();
  ~OutsideOperators();
  OutsideOperators(const OutsideOperators&) = delete;
  OutsideOperators& operator=(const OutsideOperators&) = delete;
};

}  // namespace taeda::python
