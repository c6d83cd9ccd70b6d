// The storages that a pickle refers to by number, in the order in which it meets them.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "python/common.h"
#include "taeda/tensor.h"

namespace taeda::python {

class PickledStorages {
 public:
  // The number of a storage of these bytes (a Python object). RuntimeError when it was seen as
  // another dtype or with another size; no dtype goes with any.
  size_t number(PyObject* storage, std::optional<DType> dtype);
  // [(storage, bytes, dtype or None), ...]
  PyRef list() const;

 private:
  struct Entry {
    PyRef storage;
    int64_t nbytes;
    std::optional<DType> dtype;
  };

  std::unordered_map<const Storage*, size_t> numbers_;
  std::vector<Entry> entries_;
};

}  // namespace taeda::python
