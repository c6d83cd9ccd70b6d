// What taeda.func is made of, besides vmap.
#pragma once

#include "python/common.h"

namespace taeda::python {

void add_transforms(PyObject* module);

}  // namespace taeda::python
