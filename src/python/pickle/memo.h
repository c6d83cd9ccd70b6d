// What a pickle has stored, by the identity of objects, which are kept alive so that it lasts.
#pragma once

#include <vector>

#include "python/common.h"

namespace taeda::python {

class PickledObjects {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // The number of an object, from 0 in the order of adding, or kNone.
  size_t find(PyObject* object) const {
    return slots_.empty() ? kNone : slots_[slot(object)].number;
  }
  // Returns the number; the object may not be there yet.
  size_t add(PyObject* object) {
    if (2 * objects_.size() >= slots_.size()) grow();
    objects_.push_back(PyRef::share(object));
    slots_[slot(object)] = {object, objects_.size() - 1};
    return objects_.size() - 1;
  }

 private:
  struct Slot {
    PyObject* object = nullptr;
    size_t number = kNone;
  };

  // Where the object is, or would be.
  size_t slot(PyObject* object) const {
    size_t i = reinterpret_cast<uintptr_t>(object) * 0x9E3779B97F4A7C15u >> shift_;
    while (slots_[i].object && slots_[i].object != object) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), Slot());
    shift_ = 64 - __builtin_ctzll(slots_.size());
    for (size_t n = 0; n < objects_.size(); n++)
      slots_[slot(objects_[n].get())] = {objects_[n].get(), n};
  }

  std::vector<Slot> slots_;  // a power of two, at most half of them in use
  std::vector<PyRef> objects_;
  int shift_ = 64;
};

}  // namespace taeda::python
