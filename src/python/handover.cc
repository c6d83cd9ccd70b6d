// What of Python goes along when work is handed over to a fresh thread: a thread state that lasts
// as long as the work, context variables, torch_function modes and the package's own thread-local
// objects. Ctrl-C, which Python shows to its main thread only, is passed on from there: what the
// handler raises becomes an asynchronous exception of the innermost thread, whose operators look
// for those. If the work there ends before it is noticed, it goes on to the next thread outwards.
#include "base/handover.h"
#include "python/autograd_support.h"
#include "python/module.h"
#include "python/torch_dispatch.h"
#include "python/torch_function.h"

namespace taeda::python {
namespace {

PyObject* thread_locals = nullptr;  // list of threading.local objects

// The fresh threads at work for one another, the innermost last. Used under the GIL.
using Chain = std::vector<unsigned long>;
thread_local std::shared_ptr<Chain> chain;

bool on_main_thread() {
  PyRef threading = PyRef::check(PyImport_ImportModule("threading"));
  PyRef main = PyRef::check(PyObject_CallMethod(threading.get(), "main_thread", nullptr));
  PyRef ident = PyRef::check(PyObject_GetAttrString(main.get(), "ident"));
  return PyLong_Check(ident.get()) &&
         PyLong_AsUnsignedLong(ident.get()) == PyThread_get_thread_ident();
}

PyRef values_of(PyObject* local) { return PyRef::check(PyObject_GetAttrString(local, "__dict__")); }

class CarriedPython final : public Carried {
 public:
  CarriedPython() {
    with_python([&] {
      context_ = PyRef::check(PyContext_CopyCurrent());
      torch_function_ = torch_function_state();
      torch_dispatch_ = torch_dispatch_modes();
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(thread_locals); i++)
        values_.push_back(
            PyRef::check(PyDict_Copy(values_of(PyList_GET_ITEM(thread_locals, i)).get())));
      watches_ = on_main_thread();
    });
    if (!chain) chain = std::make_shared<Chain>();
    chain_ = chain;
  }
  ~CarriedPython() override {
    const EnsureGil gil;
    interrupt_.reset();
    values_.clear();
    torch_function_ = {};
    torch_dispatch_ = PyRef();
    context_ = PyRef();
  }

  void arrive() override {
    gil_ = ensure_gil();
    chain = chain_;
    chain->push_back(PyThread_get_thread_ident());
    set_torch_function_state(torch_function_);
    set_torch_dispatch_modes(torch_dispatch_.get());
    bool copied = PyContext_Enter(context_.get()) == 0;
    for (size_t i = 0; i < values_.size() && copied; i++) {
      PyObject* local = PyList_GET_ITEM(thread_locals, static_cast<Py_ssize_t>(i));
      copied = PyDict_Update(values_of(local).get(), values_[i].get()) == 0;
    }
    if (!copied) PyErr_WriteUnraisable(thread_locals);
    without_gil_.emplace();
  }
  void leave() noexcept override {
    without_gil_.reset();
    chain->pop_back();
    pass_on(PyThreadState_Get()->async_exc);
    chain.reset();
    set_torch_function_state({});
    set_torch_dispatch_modes(nullptr);
    if (PyContext_Exit(context_.get()) != 0) PyErr_Clear();
    PyGILState_Release(gil_);
  }

  bool watches() const override { return watches_; }
  void watch() noexcept override {
    const EnsureGil gil;
    if (PyErr_CheckSignals() == 0) return;
    PyRef type = PyRef::share(PyErr_Occurred());
    interrupt_ = std::make_unique<PythonException>();
    pass_on(type.get());
  }
  // The handler's exception itself is thrown, not the one of its type that ended the work. If the
  // program has caught that one, there is nothing to throw.
  void come_back(std::exception_ptr& error) override {
    if (interrupt_ && (unnoticed_ || is_interrupt(error)))
      error = std::make_exception_ptr(PythonException(*interrupt_));
  }

 private:
  // Makes the innermost thread raise `type`, which may be null; needs the GIL.
  void pass_on(PyObject* type) {
    if (!type) return;
    unnoticed_ = chain_->empty();
    if (!unnoticed_) PyThreadState_SetAsyncExc(chain_->back(), type);
  }
  bool is_interrupt(const std::exception_ptr& error) const {
    if (!error) return false;
    try {
      std::rethrow_exception(error);
    } catch (const PythonException& thrown) {
      return thrown.type() == interrupt_->type();
    } catch (...) {
      return false;
    }
  }

  PyRef context_;
  TorchFunctionState torch_function_;
  PyRef torch_dispatch_;
  std::vector<PyRef> values_;  // of thread_locals
  std::shared_ptr<Chain> chain_;
  std::unique_ptr<PythonException> interrupt_;
  PyGILState_STATE gil_{};
  std::optional<GilRelease> without_gil_;
  bool watches_ = false;
  bool unnoticed_ = false;  // no thread that worked has raised the interrupt
};

// _carry_thread_local(local) -> local: its values go along when work is handed over.
PyObject* carry_thread_local(PyObject*, PyObject* local) {
  if (PyList_Append(thread_locals, local) < 0) return nullptr;
  return new_ref(local);
}

PyMethodDef functions[] = {
    {"_carry_thread_local", carry_thread_local, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_handover(PyObject* module) {
  thread_locals = PyRef::check(PyList_New(0)).release();
  carry_over([]() -> std::unique_ptr<Carried> { return std::make_unique<CarriedPython>(); });
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
