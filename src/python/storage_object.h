// torch.UntypedStorage: the bytes behind a tensor as a Python object with the buffer protocol.
#pragma once

#include "python/common.h"
#include "taeda/storage.h"

namespace taeda::python {

// The Python object of a storage: one at a time, so `x.untyped_storage() is y.untyped_storage()`
// tells sharing.
PyObject* wrap(Ref<Storage> storage);
bool is_storage(PyObject* object);
const Ref<Storage>& storage_of(PyObject* object);

// A storage on the memory of an exporter of the buffer protocol, which it keeps alive. `offset` and
// `nbytes` choose a part of it; nbytes < 0: the rest.
Ref<Storage> storage_from_buffer(PyObject* exporter, int64_t offset, int64_t nbytes);

}  // namespace taeda::python
