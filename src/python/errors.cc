// C++ exceptions as Python exceptions.
#include <new>
#include <stdexcept>

#include "device/api.h"
#include "python/autograd_support.h"
#include "python/common.h"

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

}  // namespace

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
    PyErr_SetString(exception_type(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(out_of_memory_error, "not enough memory for the bookkeeping of an operator");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

}  // namespace taeda::python
