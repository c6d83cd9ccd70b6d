// What of Python goes along when work is handed over to a fresh thread: a thread state that lasts
// as long as the work, context variables, torch_function modes and the package's own thread-local
// objects. Ctrl-C, which Python shows to its main thread only, is passed on from there.
#include "base/handover.h"
#include "python/autograd_support.h"
#include "python/module.h"
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
    context_ = PyRef();
  }

  void arrive() override {
    gil_ = ensure_gil();
    chain = chain_;
    chain->push_back(PyThread_get_thread_ident());
    set_torch_function_state(torch_function_);
    bool copied = PyContext_Enter(context_.get()) == 0;
    for (size_t i = 0; i < values_.size() && copied; i++) {
      PyObject* local = PyList_GET_ITEM(thread_locals, static_cast<Py_ssize_t>(i));
      copied = PyDict_Update(values_of(local).get(), values_[i].get()) == 0;
    }
    if (!copied) PyErr_WriteUnraisable(thread_locals);
    state_ = PyEval_SaveThread();
  }
  void leave() noexcept override {
    restore_thread(state_);
    chain->pop_back();
    chain.reset();
    set_torch_function_state({});
    if (PyContext_Exit(context_.get()) != 0) PyErr_Clear();
    PyGILState_Release(gil_);
  }

  bool watches() const override { return watches_; }
  // A signal's handler raised: the innermost thread gets the exception, and what it works for ends.
  void watch() noexcept override {
    const EnsureGil gil;
    if (interrupt_ || PyErr_CheckSignals() == 0) return;
    PyRef type = PyRef::share(PyErr_Occurred());
    interrupt_ = std::make_unique<PythonException>();
    if (!chain_->empty()) PyThreadState_SetAsyncExc(chain_->back(), type.get());
  }
  void come_back() override {
    if (interrupt_) throw PythonException(*interrupt_);
  }

 private:
  PyRef context_;
  TorchFunctionState torch_function_;
  std::vector<PyRef> values_;  // of thread_locals
  std::shared_ptr<Chain> chain_;
  std::unique_ptr<PythonException> interrupt_;
  PyGILState_STATE gil_{};
  PyThreadState* state_ = nullptr;
  bool watches_ = false;
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
