// What messages say of shared memory, as Python bytes.
#pragma once

#include "core/shared_memory.h"
#include "python/common.h"

namespace taeda::python {

// ValueError for bytes that are no name.
SharedName shared_name(PyObject* bytes);

}  // namespace taeda::python
