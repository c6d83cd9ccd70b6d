// What torch.multiprocessing asks of the core.
#include "base/parent_watch.h"
#include "python/arguments.h"
#include "python/call.h"
#include "python/module.h"

namespace taeda::python {
namespace {

// _end_with_process(pid)
PyObject* end_with(PyObject*, PyObject* pid) {
  TD_PYTHON_TRY
  const int64_t number = to_int(pid);
  if (number != static_cast<pid_t>(number))
    raise_python(PyExc_ValueError, "end_with_process: {} is no process's number", number);
  end_with_process(static_cast<pid_t>(number));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_end_with_process", end_with, METH_O,
     "_end_with_process(pid)\n\nKills this process as soon as the other one has ended."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_processes(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
