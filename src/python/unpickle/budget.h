// The two budgets that bound what a file can do, each charged before the fact.
//
// What could be worse than linear is charged in full: arguments that a file passes again and again
// by reference, keys that take long to hash, and keys made to have the same hash. Keys that meet in
// a table with different hashes are found by the time that they take.
#pragma once

#include "python/unpickle/key_clock.h"
#include "python/unpickle/rules.h"

namespace taeda::python {

// Keys of one hash in one container, for the kinds of keys whose hashes a file can choose.
class HashCounts {
 public:
  explicit HashCounts(uint64_t seed) : seed_(seed) {}
  int64_t of(PyObject* container, Py_hash_t hash) const {
    if (counts_.empty()) return 0;
    const auto found = counts_.find(slot(container, hash));
    return found == counts_.end() ? 0 : found->second;
  }
  void add(PyObject* container, Py_hash_t hash) { counts_[slot(container, hash)]++; }

 private:
  uint64_t slot(PyObject* container, Py_hash_t hash) const;

  uint64_t seed_;
  std::unordered_map<uint64_t, int64_t> counts_;
};

class UnpickleBudget {
 public:
  UnpickleBudget(Cost all, const UnpickleRules& rules)
      : left_(all),
        random_(reinterpret_cast<uintptr_t>(this) | 1),
        rules_(rules),
        collisions_(reinterpret_cast<uintptr_t>(this)) {}

  void charge(Cost cost, int64_t times = 1) {
    left_.memory -= cost.memory * times;
    left_.effort -= cost.effort * times;
    if (left_.memory < 0 || left_.effort < 0) [[unlikely]]
      fail();
  }
  // For what a function may copy of its arguments, which may be there only once in the file.
  void charge_arguments(PyObject* value, int depth = 0);
  // For a key that goes into a dict or set; one of a type that cannot be a key is an error.
  void charge_key(PyObject* container, PyObject* key, Cost cost);
  // The same, and for the time that store(), which returns a status, then takes.
  template <class Store>
  void store_key(PyObject* container, PyObject* key, Cost cost, const Store& store) {
    charge_key(container, key, cost);
    if (PyUnicode_CheckExact(key) || !KeyClock::is_large(container) || !is_sampled())
      return check_status(store());
    const KeyClock clock(container);
    check_status(store());
    charge({0, kExcess * clock.excess()}, KeyClock::kOneIn);
  }

 private:
  [[noreturn]] void fail() const;
  void charge_bytes(int64_t count) { charge({4 * count, count / 8}); }
  int64_t key_effort(PyObject* key, int depth = 0);
  int64_t set_effort(PyObject* set, int depth);
  void check_depth(int depth) const;
  bool is_sampled() {  // xorshift
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % KeyClock::kOneIn == 0;
  }

  Cost left_;
  uint64_t random_;
  const UnpickleRules& rules_;
  HashCounts collisions_;
};

}  // namespace taeda::python
