// Tracing, as the bindings see it.
#pragma once

#include "python/common.h"
#include "taeda/keys.h"

namespace taeda::python {

// A TracerWarning where this thread is traced: `what` ("a Python boolean") is made of a tensor, and
// a program keeps what it is now. PythonError where warnings are errors.
void warn_of_constant(const char* what);
inline void leaves_trace(const char* what) {
  if (thread_modes.included.has(Key::kTrace)) [[unlikely]]
    warn_of_constant(what);
}

void add_trace(PyObject* module);

}  // namespace taeda::python
