#include "python/unpickle/budget.h"

#include "python/objects.h"

namespace taeda::python {
namespace {

constexpr int kMaxKeyDepth = 20, kMaxArgumentDepth = 2;
constexpr int64_t kSetComparison = 5;

uint64_t mix(uint64_t x) {  // splitmix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// The bytes of an integer: 7 stands for all that have a hash of their own.
int64_t long_bytes(PyObject* value) {
  int overflow;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return static_cast<int64_t>(_PyLong_NumBits(value) / 8);
  constexpr int64_t kShort = int64_t{1} << 56;
  return number > -kShort && number < kShort ? 7 : 8;
}

// Text and bytes have hashes that a file cannot choose, short integers different ones.
bool has_chosen_hash(PyObject* key) {
  return PyTuple_Check(key) || PyFrozenSet_Check(key) || PyFloat_CheckExact(key) ||
         PyComplex_CheckExact(key) || (PyLong_CheckExact(key) && long_bytes(key) > 7);
}

}  // namespace

uint64_t HashCounts::slot(PyObject* container, Py_hash_t hash) const {
  return mix(static_cast<uint64_t>(hash) ^ mix(reinterpret_cast<uintptr_t>(container) ^ seed_));
}

void UnpickleBudget::fail() const {
  if (left_.memory >= 0)
    rules_.fail("load: reading the file would take longer than its size allows");
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(rules_.over_memory.get())),
                  rules_.over_memory.get());
  throw PythonError();
}

void UnpickleBudget::charge_arguments(PyObject* value, int depth) {
  if (PyTuple_Check(value)) {
    const Py_ssize_t size = PyTuple_GET_SIZE(value);
    charge(kCopied, size);
    if (depth > kMaxArgumentDepth) return;
    for (Py_ssize_t i = 0; i < size; i++) charge_arguments(PyTuple_GET_ITEM(value, i), depth + 1);
  } else if (PyUnicode_Check(value)) {
    charge_bytes(PyUnicode_GET_LENGTH(value) * PyUnicode_KIND(value));
  } else if (PyBytes_Check(value)) {
    charge_bytes(PyBytes_GET_SIZE(value));
  } else if (PyByteArray_Check(value)) {
    charge_bytes(PyByteArray_GET_SIZE(value));
  } else if (PyList_Check(value)) {
    charge(kCopied, PyList_GET_SIZE(value));
  } else if (PyDict_Check(value)) {
    charge(kCopied, PyDict_GET_SIZE(value));
  } else if (PyAnySet_Check(value)) {
    charge(kCopied, PySet_GET_SIZE(value));
  } else if (PyLong_Check(value)) {
    charge_bytes(long_bytes(value));
  }
}

void UnpickleBudget::charge_key(PyObject* container, PyObject* key, Cost cost) {
  const int64_t effort = key_effort(key);
  charge({cost.memory, cost.effort + effort});
  if (PyUnicode_CheckExact(key) || PyBytes_CheckExact(key)) return;
  const Py_hash_t hash = PyObject_Hash(key);
  if (hash == -1) throw PythonError();
  charge({0, (kCollision + effort) * collisions_.of(container, hash)});
  if (has_chosen_hash(key)) collisions_.add(container, hash);
}

// The effort to hash a key or to compare it with another. Keys are plain values or tuples of them.
int64_t UnpickleBudget::key_effort(PyObject* key, int depth) {
  int64_t effort = 20;
  if (PyUnicode_CheckExact(key)) {
    effort += PyUnicode_GET_LENGTH(key) * PyUnicode_KIND(key) / 8;
  } else if (PyBytes_CheckExact(key)) {
    effort += PyBytes_GET_SIZE(key) / 8;
  } else if (PyLong_CheckExact(key)) {
    effort += long_bytes(key) / 2;
  } else if (PyTuple_CheckExact(key) || Py_TYPE(key) == size_type) {
    check_depth(depth);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
      effort += key_effort(PyTuple_GET_ITEM(key, i), depth + 1);
      charge({0, 5});  // for looking at it: shared parts of it may be there many times
    }
  } else if (PyFrozenSet_CheckExact(key)) {
    effort += set_effort(key, depth);
  } else if (rules_.is_of_user(key)) {
    charge(kUser);
  } else if (!PyFloat_CheckExact(key) && !PyBool_Check(key) && key != Py_None &&
             !PyComplex_CheckExact(key) && !is_dtype(key) && !is_device(key)) {
    rules_.fail("load: a dict or set has a key of type {}", type_name(key));
  }
  return effort;
}

void UnpickleBudget::check_depth(int depth) const {
  if (depth == kMaxKeyDepth) rules_.fail("load: a key of a dict or set is nested too deeply");
}

// Equal sets of n elements with one hash are compared in n^2 steps.
int64_t UnpickleBudget::set_effort(PyObject* set, int depth) {
  check_depth(depth);
  const PyRef items = PyRef::check(PySequence_Tuple(set));
  int64_t effort = 0, chosen = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); i++) {
    PyObject* const item = PyTuple_GET_ITEM(items.get(), i);
    effort += key_effort(item, depth + 1);
    chosen += has_chosen_hash(item);
    charge({0, 15});
  }
  return effort + kSetComparison * chosen * chosen;
}

}  // namespace taeda::python
