// call_python: around calls of the C API that may run code of the program.
#pragma once

#include "python/gil.h"

namespace taeda::python {

// A thread that has lost the GIL for good is parked in the innermost of its calls: the frames
// further out own Python objects, which it may not give back.
template <class F>
auto call_python(F&& call) {
  try {
    return call();
  } catch (...) {
    park_if_ended();
    throw;
  }
}

}  // namespace taeda::python
