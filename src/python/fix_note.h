// Exceptions whose message ends with a line "Fix: ...", which becomes a note (PEP 678).
#pragma once

#include "python/common.h"

namespace taeda::python {

// Sets the Python exception. Where the text has no such line, it is PyErr_SetString.
void set_error_with_fix(PyObject* type, std::string_view text) noexcept;

}  // namespace taeda::python
