// taeda._C._SharedPages: what keeps forked workers from copying the trainer's objects.
#include "base/parent_watch.h"
#include "data/page_sharer.h"
#include "python/arenas.h"
#include "python/module.h"

namespace taeda::python {
namespace {

using data::PageFile;
using data::PageSharer;

struct PagesObject {
  PyObject_HEAD std::shared_ptr<PageFile> file;
  std::unique_ptr<PageSharer> sharer;  // in a worker
};

PyTypeObject* pages_type = nullptr;

PagesObject* cast(PyObject* self) { return reinterpret_cast<PagesObject*>(self); }

PageSharer& sharer_of(PyObject* self) {
  if (!cast(self)->sharer) raise_python(PyExc_ValueError, "_SharedPages: not started");
  return *cast(self)->sharer;
}

// _create(): None where the system does not have what it takes.
PyObject* pages_create(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  std::shared_ptr<PageFile> file = PageFile::create();
  if (!file) Py_RETURN_NONE;
  PyObject* self = PyRef::check(pages_type->tp_alloc(pages_type, 0)).release();
  new (&cast(self)->file) std::shared_ptr<PageFile>(std::move(file));
  new (&cast(self)->sharer) std::unique_ptr<PageSharer>();
  return self;
  TD_PYTHON_CATCH(nullptr)
}

void pages_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cast(self)->sharer.~unique_ptr();
  cast(self)->file.~shared_ptr();
  type->tp_free(self);
  Py_DECREF(type);
}

// set_inherited(inherited): for the time in which workers are forked.
PyObject* pages_set_inherited(PyObject* self, PyObject* inherited) {
  TD_PYTHON_TRY
  const int value = PyObject_IsTrue(inherited);
  check_status(value);
  cast(self)->file->set_inherited(value != 0);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// start(workers, prefer_memory): in a worker, before the program's own code runs.
PyObject* pages_start(PyObject* self, PyObject* args) {
  TD_PYTHON_TRY
  Py_ssize_t workers;
  int prefer_memory;
  if (!PyArg_ParseTuple(args, "np:start", &workers, &prefer_memory)) return nullptr;
  cast(self)->sharer = std::make_unique<PageSharer>(
      cast(self)->file, static_cast<size_t>(workers), 1 + watching_threads(),
      prefer_memory ? PageSharer::kMemory : PageSharer::kSpeed, arenas);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// after_batch(): whether it looked at the memory.
PyObject* pages_after_batch(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  return PyBool_FromLong(sharer_of(self).after_batch());
  TD_PYTHON_CATCH(nullptr)
}

// counts(): (pages dropped, passes, looks left out).
PyObject* pages_counts(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const data::PageSharing& counts = sharer_of(self).counts();
  return Py_BuildValue("(LLL)", static_cast<long long>(counts.dropped),
                       static_cast<long long>(counts.passes),
                       static_cast<long long>(counts.skipped));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef methods[] = {
    {"_create", pages_create, METH_NOARGS | METH_STATIC, nullptr},
    {"set_inherited", pages_set_inherited, METH_O, nullptr},
    {"start", pages_start, METH_VARARGS, nullptr},
    {"after_batch", pages_after_batch, METH_NOARGS, nullptr},
    {"counts", pages_counts, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(pages_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("Memory pages that the forked workers of a loader share.")},
    {0, nullptr},
};
PyType_Spec spec = {"taeda._C._SharedPages", sizeof(PagesObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void add_shared_pages(PyObject* module) {
  watch_arenas();
  pages_type = add_type(module, "_SharedPages", &spec);
}

}  // namespace taeda::python
