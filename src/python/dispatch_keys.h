// Sets of keys in Python: numbers with a bit a key, of which taeda/_dispatch_keys.py makes
// PyTorch's DispatchKeySet.
#pragma once

#include "python/common.h"
#include "taeda/keys.h"

namespace taeda::python {

long bits_of(KeySet keys);
KeySet keys_from_bits(long bits);
// A DispatchKeySet.
PyRef keyset_object(KeySet keys);

// Adds the functions to taeda._C.
void add_dispatch_keys(PyObject* module);

}  // namespace taeda::python
