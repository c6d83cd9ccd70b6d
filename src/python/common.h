// What every file of the bindings needs: Python.h, owning references, and the border between the
// two kinds of errors.
//
// Functions that Python calls are bracketed by TD_PYTHON_TRY ... TD_PYTHON_CATCH(value): a
// taeda::Error becomes the Python exception of its kind, PythonError means "a Python exception is
// already set". Everything here needs the GIL.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "python/gil.h"
#include "taeda/error.h"

namespace taeda::python {

// Thrown by C++ code of the bindings when a Python exception is set.
struct PythonError {};

// Sets the Python exception for the C++ exception being handled. Call inside a catch block only.
void set_python_error() noexcept;

// torch.OutOfMemoryError, a RuntimeError.
extern PyObject* out_of_memory_error;
extern PyObject* linalg_error;
extern PyObject* accelerator_error;

// An owned reference to a Python object, or null.
class PyRef {
 public:
  PyRef() = default;
  // Takes over a reference that the caller owns (null allowed).
  static PyRef adopt(PyObject* object) {
    PyRef ref;
    ref.object_ = object;
    return ref;
  }
  static PyRef share(PyObject* object) {
    Py_XINCREF(object);
    return adopt(object);
  }
  // Takes over a new reference from an API call; throws when it failed.
  static PyRef check(PyObject* object) {
    if (!object) throw PythonError();
    return adopt(object);
  }
  PyRef(const PyRef& other) : object_(other.object_) { Py_XINCREF(object_); }
  PyRef(PyRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  PyRef& operator=(PyRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Sets a Python exception and throws PythonError.
template <class... Args>
[[noreturn, gnu::noinline, gnu::cold]] void raise_python(PyObject* type, std::string_view message,
                                                         const Args&... args) {
  PyErr_SetString(type, taeda::format(message, args...).c_str());
  throw PythonError();
}

// "int", "numpy.ndarray", "Tensor": how messages name an object's type.
inline const char* type_name(PyObject* object) {
  const char* name = Py_TYPE(object)->tp_name;
  return std::strncmp(name, "taeda.", 6) == 0 ? name + 6 : name;
}

// Throws when an API call returned a negative status.
inline void check_status(int status) {
  if (status < 0) throw PythonError();
}

inline PyObject* new_ref(PyObject* object) {
  Py_INCREF(object);
  return object;
}

// An interned string, made on first use and kept for good: `static PyObject* const name =
// interned("dim");`
inline PyObject* interned(const char* text) {
  PyObject* string = PyUnicode_InternFromString(text);
  if (!string) throw PythonError();
  return string;
}

// The UTF-8 text of a str, borrowed from it.
inline std::string_view utf8(PyObject* string) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(string, &size);
  if (!text) throw PythonError();
  return {text, static_cast<size_t>(size)};
}

}  // namespace taeda::python

#define TD_PYTHON_TRY try {
#define TD_PYTHON_CATCH(value)           \
  }                                      \
  catch (...) {                          \
    ::taeda::python::park_if_ended();    \
    ::taeda::python::set_python_error(); \
    return value;                        \
  }
