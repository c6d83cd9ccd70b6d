#include "python/gil.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include "base/interrupt.h"
#include "python/autograd_support.h"

namespace taeda::python {
namespace {

// Where this thread has given the GIL away; null while it holds it.
thread_local GilRelease* released = nullptr;

// Python runs the handlers of signals on the main thread only.
bool on_main_thread() { return syscall(SYS_gettid) == getpid(); }

// Handlers are the program's code: they run in its modes, not in those of the operator's layers.
class ProgramModes {
 public:
  explicit ProgramModes(const ThreadModes& modes) : saved_(std::exchange(thread_modes, modes)) {}
  ~ProgramModes() { thread_modes = saved_; }
  ProgramModes(const ProgramModes&) = delete;
  ProgramModes& operator=(const ProgramModes&) = delete;

 private:
  const ThreadModes saved_;
};

// Where the GIL was not given away, nobody has noted the modes; a layer excludes keys, and nothing
// else.
ThreadModes modes_without_layers() {
  ThreadModes modes = thread_modes;
  modes.excluded = modes.inference ? KeySet(Key::kAutograd) : KeySet();
  return modes;
}

// What another thread has raised on this one (PyThreadState_SetAsyncExc) waits for the next
// bytecode. Whoever has no GIL merely looks whether there is something.
bool has_async_exception(PyThreadState* state) {
  return __atomic_load_n(&state->async_exc, __ATOMIC_RELAXED) != nullptr;
}
bool raise_async_exception() {
  PyObject* const type = std::exchange(PyThreadState_Get()->async_exc, nullptr);
  if (!type) return false;
  PyErr_SetNone(type);
  Py_DECREF(type);
  return true;
}

}  // namespace

void park_thread() noexcept {
  while (true) pause();
}

void park_if_ended() noexcept {
  if (!std::current_exception()) park_thread();
}

// A thread that is very late finds an interpreter that has gone altogether.
void restore_thread(PyThreadState* state) {
  if (!Py_IsInitialized()) park_thread();
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    park_thread();
  }
}

PyGILState_STATE ensure_gil() {
  if (!Py_IsInitialized() && !PyGILState_Check()) park_thread();
  try {
    return PyGILState_Ensure();
  } catch (...) {
    park_thread();
  }
}

void GilRelease::begin() {
  if (!Py_IsInitialized()) return;  // being finalized, by this thread: no other one runs Python
  modes_ = thread_modes;
  outer_ = std::exchange(released, this);
  postpone_interrupt_check();
  state_ = PyEval_SaveThread();
}

void GilRelease::end() noexcept {
  restore_thread(state_);
  released = outer_;
}

GilAcquire::GilAcquire() : state_(ensure_gil()), released_(std::exchange(released, nullptr)) {}
GilAcquire::~GilAcquire() {
  if (!PyGILState_Check()) park_thread();  // Python code that was called is being unwound
  released = released_;
  PyGILState_Release(state_);
}

void look_for_signals() {
  if (!Py_IsInitialized()) return;
  const bool handles_signals = on_main_thread();
  const auto look = [=](const ThreadModes& program) {
    const ProgramModes modes(program);
    if (handles_signals ? PyErr_CheckSignals() < 0 : raise_async_exception())
      throw PythonException();
  };
  GilRelease* const given_away = released;
  if (!given_away) {
    if (PyGILState_GetThisThreadState() && PyGILState_Check()) look(modes_without_layers());
    return;
  }
  if (!handles_signals && !has_async_exception(given_away->state_)) return;
  // Takes the GIL until the end of the scope.
  struct Retaken {
    explicit Retaken(GilRelease* release) : release_(release) {
      restore_thread(release_->state_);
      released = nullptr;
    }
    ~Retaken() {
      released = release_;
      release_->state_ = PyEval_SaveThread();
    }
    GilRelease* const release_;
  };
  const Retaken gil(given_away);
  look(given_away->modes_);
}

}  // namespace taeda::python
