// taeda._C._FileLock: a lock between the threads of all processes, taken and released in C++.
//
// A signal's handler that raises between two instructions of Python can leave a lock taken for ever
// that Python code had just taken. Here that happens within __enter__ and __exit__ of a `with`
// statement, between which and the statement's body no handler runs; and while one waits nothing is
// held that is not let go of when the handler raises.
#include "python/file_lock.h"

#include <fcntl.h>
#include <pythread.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "python/module.h"
#include "python/operator_pause.h"

namespace taeda::python {
namespace {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;  // none: never

constexpr long kFirstSleepNs = 100'000, kLongestSleepNs = 10'000'000;

struct LockObject {
  PyObject_HEAD PyObject* file;  // which owns the descriptor
  PyThread_type_lock threads;    // record locks exclude processes only
  int descriptor;
  long long byte;
};

// lock.held(block, timeout), to be used in one `with` statement.
struct AttemptObject {
  PyObject_HEAD LockObject* lock;
  Deadline deadline;
  bool taken;
};

PyTypeObject* attempt_type = nullptr;

LockObject* lock_of(PyObject* self) { return reinterpret_cast<LockObject*>(self); }
AttemptObject* attempt_of(PyObject* self) { return reinterpret_cast<AttemptObject*>(self); }

// 0 or errno.
int change_record_lock(const LockObject& lock, short type, bool wait) {
  struct flock record = {};
  record.l_type = type;
  record.l_whence = SEEK_SET;
  record.l_start = static_cast<off_t>(lock.byte);
  record.l_len = 1;
  return fcntl(lock.descriptor, wait ? F_SETLKW : F_SETLK, &record) == 0 ? 0 : errno;
}

// What is left, at most an hour; -1: for ever.
long long microseconds_left(const Deadline& deadline) {
  if (!deadline) return -1;
  const auto left = std::clamp<Clock::duration>(*deadline - Clock::now(), Clock::duration::zero(),
                                                std::chrono::hours(1));
  return std::chrono::ceil<std::chrono::microseconds>(left).count();
}

bool has_passed(const Deadline& deadline) { return deadline && Clock::now() >= *deadline; }

bool take_from_threads(LockObject& lock, const Deadline& deadline) {
  PyLockStatus status = PyThread_acquire_lock_timed(lock.threads, 0, 0);
  while (status != PY_LOCK_ACQUIRED) {
    if (has_passed(deadline)) return false;
    const long long left = microseconds_left(deadline);
    {
      const GilPause pause;
      status = PyThread_acquire_lock_timed(lock.threads, left, 1);
    }
    if (status == PY_LOCK_INTR) check_status(PyErr_CheckSignals());
  }
  return true;
}

[[noreturn]] void raise_errno(int error) {
  errno = error;
  PyErr_SetFromErrno(PyExc_OSError);
  throw PythonError();
}

// False where the system sees a deadlock: it takes threads for their processes and finds cycles
// that are none.
bool wait_for_record_lock(const LockObject& lock) {
  while (true) {
    int error = 0;
    {
      const GilPause pause;
      error = change_record_lock(lock, F_WRLCK, true);
    }
    if (error == 0) return true;
    if (error == EDEADLK) return false;
    if (error != EINTR) raise_errno(error);
    check_status(PyErr_CheckSignals());
  }
}

bool take_from_processes(const LockObject& lock, const Deadline& deadline) {
  timespec sleep = {0, kFirstSleepNs};
  while (true) {
    const int error = change_record_lock(lock, F_WRLCK, false);
    if (error == 0) return true;
    if (error != EAGAIN && error != EACCES && error != EINTR) raise_errno(error);
    if (has_passed(deadline)) return false;
    if (!deadline && sleep.tv_nsec == kFirstSleepNs && wait_for_record_lock(lock)) return true;
    {
      const GilPause pause;
      nanosleep(&sleep, nullptr);
    }
    sleep.tv_nsec = std::min(2 * sleep.tv_nsec, kLongestSleepNs);
    check_status(PyErr_CheckSignals());
  }
}

// Whether it was free in time. Takes nothing where it throws.
bool take(LockObject& lock, const Deadline& deadline) {
  if (!take_from_threads(lock, deadline)) return false;
  bool taken = false;
  try {
    taken = take_from_processes(lock, deadline);
  } catch (...) {
    PyThread_release_lock(lock.threads);
    throw;
  }
  if (!taken) PyThread_release_lock(lock.threads);
  return taken;
}

bool is_taken_here(const LockObject& lock) {
  if (PyThread_acquire_lock_timed(lock.threads, 0, 0) != PY_LOCK_ACQUIRED) return true;
  PyThread_release_lock(lock.threads);
  return false;
}

void release(LockObject& lock) {
  if (!is_taken_here(lock)) raise_python(PyExc_RuntimeError, "FileLock: not taken");
  change_record_lock(lock, F_UNLCK, false);
  PyThread_release_lock(lock.threads);
}

Deadline parse_deadline(PyObject* args, PyObject* kwargs, const char* format) {
  static const char* names[] = {"block", "timeout", nullptr};
  int block = 1;
  PyObject* timeout = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), &block,
                                   &timeout))
    throw PythonError();
  if (!block) return Clock::now();
  if (timeout == Py_None) return std::nullopt;
  const double seconds = PyFloat_AsDouble(timeout);
  if (PyErr_Occurred()) throw PythonError();
  constexpr double kYear = 366.0 * 24 * 3600;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::clamp(seconds, 0.0, kYear)));
}

// _FileLock(file, descriptor, byte)
PyObject* lock_new(PyTypeObject* type, PyObject* args, PyObject*) {
  TD_PYTHON_TRY
  PyObject* file;
  int descriptor;
  long long byte;
  if (!PyArg_ParseTuple(args, "OiL:_FileLock", &file, &descriptor, &byte)) return nullptr;
  PyRef self = PyRef::check(type->tp_alloc(type, 0));
  LockObject& lock = *lock_of(self.get());
  lock.threads = PyThread_allocate_lock();
  if (!lock.threads) return PyErr_NoMemory();
  lock.file = new_ref(file);
  lock.descriptor = descriptor;
  lock.byte = byte;
  return self.release();
  TD_PYTHON_CATCH(nullptr)
}

void lock_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (lock_of(self)->threads) PyThread_free_lock(lock_of(self)->threads);
  Py_XDECREF(lock_of(self)->file);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* lock_acquire(PyObject* self, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  return PyBool_FromLong(take(*lock_of(self), parse_deadline(args, kwargs, "|pO:acquire")));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* lock_release(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  release(*lock_of(self));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* lock_enter(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  return PyBool_FromLong(take(*lock_of(self), std::nullopt));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* lock_held(PyObject* self, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  const Deadline deadline = parse_deadline(args, kwargs, "|pO:held");
  PyObject* attempt = PyRef::check(attempt_type->tp_alloc(attempt_type, 0)).release();
  attempt_of(attempt)->lock = lock_of(new_ref(self));
  new (&attempt_of(attempt)->deadline) Deadline(deadline);
  return attempt;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* lock_is_taken_here(PyObject* self, PyObject*) {
  return PyBool_FromLong(is_taken_here(*lock_of(self)));
}

PyObject* lock_forget(PyObject* self, PyObject*) {
  PyThread_type_lock fresh = PyThread_allocate_lock();
  if (!fresh) return PyErr_NoMemory();
  lock_of(self)->threads = fresh;  // the old one may be taken by a thread that is not here
  Py_RETURN_NONE;
}

void attempt_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(attempt_of(self)->lock));
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* attempt_enter(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  AttemptObject& attempt = *attempt_of(self);
  attempt.taken = take(*attempt.lock, attempt.deadline);
  return PyBool_FromLong(attempt.taken);
  TD_PYTHON_CATCH(nullptr)
}

PyObject* attempt_exit(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  AttemptObject& attempt = *attempt_of(self);
  if (std::exchange(attempt.taken, false)) release(*attempt.lock);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef lock_methods[] = {
    {"acquire", as_function(lock_acquire), METH_VARARGS | METH_KEYWORDS,
     "acquire(block=True, timeout=None): whether it was free in time. Where signals' handlers may "
     "raise, held() is the one to use."},
    {"release", lock_release, METH_NOARGS, "Any thread of the process that has it may call this."},
    {"held", as_function(lock_held), METH_VARARGS | METH_KEYWORDS,
     "held(block=True, timeout=None): for a `with` statement, which gets whether it was free in "
     "time and releases it in the end."},
    {"is_taken_here", lock_is_taken_here, METH_NOARGS, "Whether this process has it."},
    {"_forget_threads", lock_forget, METH_NOARGS, "In a forked child, which has not taken it."},
    {"__enter__", lock_enter, METH_NOARGS, nullptr},
    {"__exit__", lock_release, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot lock_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(lock_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(lock_dealloc)},
    {Py_tp_methods, lock_methods},
    {Py_tp_doc, const_cast<char*>("A byte of a file as a lock, between threads and processes.")},
    {0, nullptr},
};
PyType_Spec lock_spec = {"taeda._C._FileLock", sizeof(LockObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, lock_slots};

PyMethodDef attempt_methods[] = {
    {"__enter__", attempt_enter, METH_NOARGS, nullptr},
    {"__exit__", attempt_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot attempt_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(attempt_dealloc)},
    {Py_tp_methods, attempt_methods},
    {Py_tp_doc, const_cast<char*>("A lock in a `with` statement.")},
    {0, nullptr},
};
PyType_Spec attempt_spec = {"taeda._C._LockAttempt", sizeof(AttemptObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, attempt_slots};

}  // namespace

void add_file_lock(PyObject* module) {
  add_type(module, "_FileLock", &lock_spec);
  attempt_type = add_type(module, "_LockAttempt", &attempt_spec);
}

}  // namespace taeda::python
