// C++ exceptions as Python exceptions.
#include <new>
#include <stdexcept>

#include "base/fix_line.h"
#include "device/api.h"
#include "python/autograd_support.h"
#include "python/common.h"
#include "python/common_fixes.h"
#include "python/fix_note.h"

namespace taeda::python {

PyObject* out_of_memory_error = nullptr;
PyObject* linalg_error = nullptr;
PyObject* accelerator_error = nullptr;

namespace {

PyObject* exception_type(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRuntime:
      return PyExc_RuntimeError;
    case ErrorKind::kValue:
      return PyExc_ValueError;
    case ErrorKind::kIndex:
      return PyExc_IndexError;
    case ErrorKind::kType:
      return PyExc_TypeError;
    case ErrorKind::kNotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::kAttribute:
      return PyExc_AttributeError;
    case ErrorKind::kOutOfMemory:
      return out_of_memory_error;
    case ErrorKind::kLinAlg:
      return linalg_error;
    case ErrorKind::kAssertion:
      return PyExc_AssertionError;
    case ErrorKind::kOS:
      return PyExc_OSError;
  }
  return PyExc_RuntimeError;
}

// An exception that is set already gets a note, which it names as ours (nn/modules/_errors.py moves
// it); it stays as it is if that fails.
void add_fix(std::string_view fix) noexcept {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* note = PyUnicode_FromStringAndSize(fix.data(), static_cast<Py_ssize_t>(fix.size()));
  if (note) {
    Py_XDECREF(PyObject_CallMethod(value, "add_note", "O", note));
    PyErr_Clear();
    PyObject_SetAttrString(value, "_taeda_fix", note);
  }
  Py_XDECREF(note);
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

}  // namespace

void set_error_with_fix(PyObject* type, std::string_view text) noexcept {
  const size_t at = text.rfind(kFixLine);
  const std::string_view common = at == text.npos ? common_fix(text) : std::string_view();
  const std::string_view message = text.substr(0, at);
  const auto size = static_cast<Py_ssize_t>(message.size());
  PyObject* shown = PyUnicode_DecodeUTF8(message.data(), size, "replace");
  if (!shown) return;
  PyErr_SetObject(type, shown);
  Py_DECREF(shown);
  if (at != text.npos)
    add_fix(text.substr(at + 1));
  else if (!common.empty())
    add_fix(common);
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_SystemError, "taeda: PythonError without a Python exception");
  } catch (const PythonException& error) {
    error.restore();
  } catch (const cuda::AcceleratorError& error) {
    PyErr_SetString(accelerator_error, error.what());
  } catch (const Error& error) {
    set_error_with_fix(exception_type(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(out_of_memory_error, "not enough memory for the bookkeeping of an operator");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

}  // namespace taeda::python
