// taeda._C._FileLock, which python/taeda/multiprocessing/file_lock.py builds upon.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace taeda::python {

void add_file_lock(PyObject* module);

}  // namespace taeda::python
