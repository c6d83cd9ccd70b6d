// _C._unpickle.
#include <pthread.h>

#include "python/module.h"
#include "python/unpickle/unpickler.h"

namespace taeda::python {
namespace {

// No collections of cycles until the end of the scope: what is being made is no garbage, and
// looking at it again and again would take most of the time. The GIL guards the counter.
class CollectorPause {
 public:
  CollectorPause() {
    static const int registered = pthread_atfork(nullptr, nullptr, resume_in_child);
    (void)registered;
    if (active_++ == 0) was_enabled_ = PyGC_Disable() != 0;
  }
  ~CollectorPause() {
    if (--active_ == 0 && was_enabled_) PyGC_Enable();
  }
  CollectorPause(const CollectorPause&) = delete;
  CollectorPause& operator=(const CollectorPause&) = delete;

 private:
  // The threads that paused it are not there.
  static void resume_in_child() {
    if (std::exchange(active_, 0) > 0 && was_enabled_) PyGC_Enable();
  }
  static inline int active_ = 0;
  static inline bool was_enabled_ = false;
};

// _unpickle(data, position, rules, persistent_load, memory, effort, encoding) -> (object, its end)
PyObject* unpickle(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *data, *rules, *persistent_load;
  Py_ssize_t position;
  long long memory, effort;
  const char* encoding;
  if (!PyArg_ParseTuple(args, "SnOOLLs:_unpickle", &data, &position, &rules, &persistent_load,
                        &memory, &effort, &encoding))
    return nullptr;
  if (position < 0 || position > PyBytes_GET_SIZE(data))
    raise_python(PyExc_ValueError, "_unpickle: position {} outside the data", position);
  const UnpickleRules table(rules);
  const std::string_view text(PyBytes_AS_STRING(data), static_cast<size_t>(PyBytes_GET_SIZE(data)));
  const PickleReader reader(text, static_cast<size_t>(position), table);
  Unpickler unpickler(reader, table, persistent_load, {memory, effort}, encoding);
  const CollectorPause pause;
  const PyRef result = unpickler.load();
  return Py_BuildValue("On", result.get(), static_cast<Py_ssize_t>(unpickler.position()));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_unpickle", unpickle, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_unpickler(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
