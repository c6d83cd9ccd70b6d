// KeyClock: how long a key takes to be stored in a dict or set.
//
// Keys may be chosen so that they meet in a table though their hashes differ: CPython looks at
// slots in an order that follows from the hash, and a file that fills that order makes each look
// take as long as the table is. No count tells such keys from honest ones, but the time does. It is
// measured for one key in 16, at random, in tables that are large enough to matter.
#pragma once

#include <time.h>

#include "python/objects.h"

namespace taeda::python {

class KeyClock {
 public:
  static constexpr int kOneIn = 16;

  explicit KeyClock(PyObject* container)
      : container_(container), table_(table_of(container)), start_(now()) {}

  // Nanoseconds beyond what an honest key takes; of a table that has grown meanwhile, none.
  int64_t excess() const {
    const int64_t spent = now() - start_ - kHonest;
    return spent > 0 && table_of(container_) == table_ ? spent : 0;
  }

  static bool is_large(PyObject* container) {
    constexpr Py_ssize_t kLarge = 64;
    if (PyDict_Check(container)) return PyDict_GET_SIZE(container) >= kLarge;
    return PyAnySet_Check(container) && PySet_GET_SIZE(container) >= kLarge;
  }

 private:
  static constexpr int64_t kHonest = 3000;  // page faults and the clock among it

  static const void* table_of(PyObject* container) {
    if (PyDict_Check(container)) return reinterpret_cast<PyDictObject*>(container)->ma_keys;
    return reinterpret_cast<PySetObject*>(container)->table;
  }
  // Of this thread alone: other programs do not lengthen it.
  static int64_t now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  PyObject* const container_;
  const void* const table_;
  const int64_t start_;
};

}  // namespace taeda::python
