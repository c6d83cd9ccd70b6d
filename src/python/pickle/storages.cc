#include "python/pickle/storages.h"

#include "python/storage_object.h"
#include "python/wrap.h"

namespace taeda::python {

size_t PickledStorages::number(PyObject* storage, std::optional<DType> dtype) {
  const Storage& bytes = *storage_of(storage);
  const auto [found, is_new] = numbers_.try_emplace(&bytes, entries_.size());
  if (is_new) {
    entries_.push_back({PyRef::share(storage), bytes.nbytes(), dtype});
    return found->second;
  }
  Entry& entry = entries_[found->second];
  TD_CHECK(entry.nbytes == bytes.nbytes(), "save: a storage changed its size while it was saved");
  TD_CHECK(!dtype || !entry.dtype || *dtype == *entry.dtype || entry.nbytes == 0,
           "Cannot save multiple tensors or storages that view the same data as different types");
  if (!entry.dtype) entry.dtype = dtype;
  return found->second;
}

PyRef PickledStorages::list() const {
  PyRef list = PyRef::check(PyList_New(static_cast<Py_ssize_t>(entries_.size())));
  for (size_t i = 0; i < entries_.size(); i++) {
    const Entry& entry = entries_[i];
    const PyRef dtype = entry.dtype ? PyRef::check(wrap(*entry.dtype)) : PyRef::share(Py_None);
    PyObject* row = Py_BuildValue("OLO", entry.storage.get(), static_cast<long long>(entry.nbytes),
                                  dtype.get());
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), PyRef::check(row).release());
  }
  return list;
}

}  // namespace taeda::python
