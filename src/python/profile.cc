// taeda._C._profile_start and _profile_stop: the profiler's records as plain Python objects.
#include "taeda/profile.h"

#include <memory>
#include <unordered_map>

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
  int shapes = true, frames = false, memory = false;
  Py_ssize_t capacity = 1 << 16;
  if (!PyArg_ParseTuple(args, "|ppnp:_profile_start", &shapes, &frames, &capacity, &memory))
    return nullptr;
  if (capacity < 1 || capacity > (1 << 24))
    raise_python(PyExc_ValueError, "_profile_start(): capacity must lie in [1, 2^24], got {}",
                 static_cast<int64_t>(capacity));
  set_profile_frame(innermost_frame);
  start_profile({shapes != 0, frames != 0, memory != 0, static_cast<size_t>(capacity)});
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

constexpr const char* kProfile = "taeda profile";

// The records as a capsule, of which rows() makes objects once somebody asks for them.
PyObject* stop(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  auto profile = std::make_unique<Profile>(stop_profile());
  const uint64_t dropped = profile->dropped;
  PyRef capsule = PyRef::check(PyCapsule_New(profile.get(), kProfile, [](PyObject* self) {
    delete static_cast<Profile*>(PyCapsule_GetPointer(self, kProfile));
  }));
  profile.release();
  return Py_BuildValue("(OK)", capsule.get(), static_cast<unsigned long long>(dropped));
  TD_PYTHON_CATCH(nullptr)
}

// Makes each operator's name once.
class Names {
 public:
  PyObject* of(const ProfileRecord& record) {
    if (!record.op) {
      block_ = PyRef::check(PyUnicode_DecodeUTF8(
          record.block.data(), static_cast<Py_ssize_t>(record.block.size()), "replace"));
      return block_.get();
    }
    PyRef& name = names_[record.op];
    if (!name) name = PyRef::check(PyUnicode_FromString(record.op->qualified_name().c_str()));
    return name.get();
  }

 private:
  std::unordered_map<const Operator*, PyRef> names_;
  PyRef block_;
};

PyRef row_of(const ProfileRecord& record, Names& names) {
  PyRef shapes = PyRef::check(PyList_New(0));
  for (const DimVector& shape : record.shapes)
    check_status(PyList_Append(shapes.get(), PyRef::check(wrap(IntSpan(shape))).get()));
  return PyRef::check(Py_BuildValue(
      "(OOLLKsLLO)", names.of(record), shapes.get(), static_cast<long long>(record.start_ns),
      static_cast<long long>(record.end_ns), static_cast<unsigned long long>(record.thread),
      record.frame.c_str(), static_cast<long long>(record.bytes_before),
      static_cast<long long>(record.bytes_after), record.op ? Py_False : Py_True));
}

PyObject* rows(PyObject*, PyObject* capsule) {
  TD_PYTHON_TRY
  const auto* profile = static_cast<const Profile*>(PyCapsule_GetPointer(capsule, kProfile));
  if (!profile) throw PythonError();
  Names names;
  PyRef list = PyRef::check(PyList_New(0));
  for (const ProfileRecord& record : profile->records)
    check_status(PyList_Append(list.get(), row_of(record, names).get()));
  return list.release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* begin_block(PyObject*, PyObject* name) {
  TD_PYTHON_TRY
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (!text) throw PythonError();
  return PyLong_FromUnsignedLongLong(begin_profile_block({text, static_cast<size_t>(size)}));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* end_block(PyObject*, PyObject* number) {
  TD_PYTHON_TRY
  const unsigned long long which = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) throw PythonError();
  end_profile_block(which);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* bytes(PyObject*, PyObject*) { return PyLong_FromLongLong(storage_bytes()); }

PyMethodDef functions[] = {
    {"_profile_start", start, METH_VARARGS,
     "_profile_start(shapes=True, frames=False, capacity=65536, memory=False)\n\nRecords this "
     "thread's operators until _profile_stop()."},
    {"_profile_stop", stop, METH_NOARGS,
     "_profile_stop() -> (profile, dropped)\n\n_profile_rows(profile) gives the records."},
    {"_profile_rows", rows, METH_O,
     "_profile_rows(profile) -> records\n\nEach record is (name, shapes, start_ns, end_ns, thread, "
     "frame, bytes_before, bytes_after, is_block)."},
    {"_profile_begin_block", begin_block, METH_O,
     "_profile_begin_block(name) -> number\n\nOf a block that _profile_end_block(number) ends."},
    {"_profile_end_block", end_block, METH_O, "_profile_end_block(number)"},
    {"_storage_bytes", bytes, METH_NOARGS,
     "_storage_bytes() -> int\n\nOf CPU storages: allocated by this thread less released by it."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_profile(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
