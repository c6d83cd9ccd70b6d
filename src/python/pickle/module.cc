// _C._pickle.
#include "python/module.h"
#include "python/pickle/pickler.h"

namespace taeda::python {
namespace {

constexpr int kHighestProtocol = 5;

// _pickle(object, protocol, rules) -> (the pickle, [(storage, its bytes, dtype or None), ...])
PyObject* pickle(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *object, *rules;
  int protocol;
  if (!PyArg_ParseTuple(args, "OiO:_pickle", &object, &protocol, &rules)) return nullptr;
  if (protocol > kHighestProtocol)
    raise_python(PyExc_ValueError, "pickle protocol must be <= {}, got {}", kHighestProtocol,
                 protocol);
  const PickleRules table(rules);
  Pickler pickler(table, protocol < 0 ? kHighestProtocol : protocol);
  pickler.dump(object);
  const PyRef storages = pickler.storages();
  return Py_BuildValue("y#O", pickler.bytes().data(),
                       static_cast<Py_ssize_t>(pickler.bytes().size()), storages.get());
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_pickle", pickle, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_pickler(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
