// What tests and tools ask of operators on fallback (ops/fallback.h): _C._fallback_counts() and its
// relatives.
#include "ops/fallback.h"

#include "core/device_memory.h"
#include "python/common.h"
#include "python/module.h"

namespace taeda::python {
namespace {

// _fallback_counts(): how often each operator has run on the CPU for another device.
PyObject* fallback_counts(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  PyRef dict = PyRef::check(PyDict_New());
  for (const auto& [op, calls] : fallback::counts()) {
    PyRef number = PyRef::check(PyLong_FromLongLong(calls));
    check_status(PyDict_SetItemString(dict.get(), op.c_str(), number.get()));
  }
  return dict.release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* reset_fallback_counts(PyObject*, PyObject*) {
  fallback::reset_counts();
  Py_RETURN_NONE;
}

// _set_fallback("warn" | "quiet" | "refuse"): what an operator on fallback does.
PyObject* set_fallback(PyObject*, PyObject* policy) {
  TD_PYTHON_TRY
  const std::string_view name = utf8(policy);
  if (name == "warn")
    fallback::set_policy(fallback::Policy::kWarn);
  else if (name == "quiet")
    fallback::set_policy(fallback::Policy::kQuiet);
  else if (name == "refuse")
    fallback::set_policy(fallback::Policy::kRefuse);
  else
    raise_python(PyExc_ValueError, "_set_fallback(): expected warn, quiet or refuse, got '{}'",
                 name);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// _host_reads(): how often the host has read elements of a device.
PyObject* count_host_reads(PyObject*, PyObject*) { return PyLong_FromLongLong(host_reads()); }

PyMethodDef functions[] = {
    {"_fallback_counts", fallback_counts, METH_NOARGS, nullptr},
    {"_reset_fallback_counts", reset_fallback_counts, METH_NOARGS, nullptr},
    {"_set_fallback", set_fallback, METH_O, nullptr},
    {"_host_reads", count_host_reads, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_fallback(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
