#include "python/gil.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <utility>

#include "base/interrupt.h"
#include "python/autograd_support.h"
#include "python/operator_pause.h"

namespace taeda::python {
namespace {

// Where this thread has given the GIL away; null while it holds it.
thread_local GilRelease* released = nullptr;

// Threads that run an operator without the GIL, and such as wait for a moment without any.
struct Running {
  Running() {
    pthread_atfork(nullptr, nullptr, [] {
      running().operators = 0;
      running().waiting = 0;
    });
  }
  static Running& running() {
    static Running& instance = *new Running;
    return instance;
  }
  std::atomic<int> operators{0}, waiting{0};
};

constexpr auto kLongestWait = std::chrono::seconds(1);
constexpr useconds_t kPauseUs = 20;
constexpr int kMostPauses = 1000;  // of an operator's end, for one that waits

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
  Running::running().operators++;
  state_ = PyEval_SaveThread();
}

void GilRelease::end() noexcept {
  restore_thread(state_);
  released = outer_;
  Running& running = Running::running();
  if (--running.operators > 0) return;
  for (int i = 0; running.waiting > 0 && i < kMostPauses; i++) {
    const GilPause pause;
    usleep(kPauseUs);
  }
}

GilPause::GilPause() : state_(PyEval_SaveThread()) {}
GilPause::~GilPause() { restore_thread(state_); }

OutsideOperators::OutsideOperators() { Running::running().operators--; }
OutsideOperators::~OutsideOperators() { Running::running().operators++; }

bool wait_for_operators() {
  Running& running = Running::running();
  if (running.operators == 0) return true;
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  running.waiting++;
  while (running.operators > 0 && std::chrono::steady_clock::now() < end) {
    const GilPause pause;
    usleep(kPauseUs);
  }
  running.waiting--;
  return running.operators == 0;
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
