// taeda._C._profile_start and _profile_stop: the profiler's records as plain Python objects.
#include "taeda/profile.h"

#include "python/autograd_support.h"
#include "python/module.h"
#include "python/objects.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

// "model.py:12 forward" of the innermost frame of Python.
std::string innermost_frame() {
  const EnsureGil gil;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return "";
  const PyRef code = PyRef::adopt(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const auto* c = reinterpret_cast<PyCodeObject*>(code.get());
  return taeda::format("{}:{} {}", utf8(c->co_filename), PyFrame_GetLineNumber(frame),
                       utf8(c->co_name));
}

PyObject* start(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  int shapes = true, frames = false;
  Py_ssize_t capacity = 1 << 16;
  if (!PyArg_ParseTuple(args, "|ppn:_profile_start", &shapes, &frames, &capacity)) return nullptr;
  if (capacity < 1 || capacity > (1 << 24))
    raise_python(PyExc_ValueError, "_profile_start(): capacity must lie in [1, 2^24], got {}",
                 static_cast<int64_t>(capacity));
  set_profile_frame(innermost_frame);
  start_profile({shapes != 0, frames != 0, static_cast<size_t>(capacity)});
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyRef row_of(const ProfileRecord& record) {
  PyRef shapes = PyRef::check(PyList_New(0));
  for (const DimVector& shape : record.shapes)
    check_status(PyList_Append(shapes.get(), PyRef::check(wrap(IntSpan(shape))).get()));
  return PyRef::check(
      Py_BuildValue("(sOLLKs)", record.op->qualified_name().c_str(), shapes.get(),
                    static_cast<long long>(record.start_ns), static_cast<long long>(record.end_ns),
                    static_cast<unsigned long long>(record.thread), record.frame.c_str()));
}

// _profile_stop() -> ([(name, shapes, start_ns, end_ns, thread, frame), ...], dropped)
PyObject* stop(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  const Profile profile = stop_profile();
  PyRef list = PyRef::check(PyList_New(0));
  for (const ProfileRecord& record : profile.records)
    check_status(PyList_Append(list.get(), row_of(record).get()));
  return Py_BuildValue("(OK)", list.get(), static_cast<unsigned long long>(profile.dropped));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_profile_start", start, METH_VARARGS,
     "_profile_start(shapes=True, frames=False, capacity=65536)\n\nRecords this thread's operators "
     "until _profile_stop()."},
    {"_profile_stop", stop, METH_NOARGS,
     "_profile_stop() -> (records, dropped)\n\nEach record is (name, shapes, start_ns, end_ns, "
     "thread, frame)."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_profile(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
