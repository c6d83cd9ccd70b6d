// "Did you mean 'bias'?" behind TypeErrors of functions and classes that are written in Python.
#pragma once

#include "python/common.h"

namespace taeda::python {

// Called with a Python exception set: a TypeError of `callable` (a function or class) about a
// keyword that it does not take, one of `kwnames` (may be null), gets the name that may have been
// meant; other exceptions stay as they are. Null, for the caller to return.
PyObject* hint_at_keywords(PyObject* callable, PyObject* kwnames);

// The Python function as an object that calls it so (overridable.cc).
PyRef hinting_function(PyObject* function);

// Adds _hint_keywords and _did_you_mean.
void add_keyword_hints(PyObject* module);

}  // namespace taeda::python
