// What the files that bind the device layer share (cuda.cc, cuda_memory.cc, cuda_graph.cc).
#pragma once

#include "device/stream.h"
#include "python/common.h"
#include "python/module.h"

namespace taeda::python {

void add_cuda_memory(PyObject* module);
void add_cuda_graphs(PyObject* module);

// The arguments of a function as C++ values, by PyArg_ParseTuple's format.
template <class... Values>
void parse(PyObject* args, const char* format, Values*... values) {
  if (!PyArg_ParseTuple(args, format, values...)) throw PythonError();
}

// (device) and (device, number of a stream), for functions that take nothing else.
inline int device_argument(PyObject* args) {
  int device = 0;
  parse(args, "i", &device);
  return device;
}

inline cuda::Stream stream_argument(PyObject* args) {
  int device = 0;
  long long id = 0;
  parse(args, "iL", &device, &id);
  return {device, id};
}

// A function of the module: `body(args)` gives a new reference.
template <PyObject* (*body)(PyObject* args)>
PyObject* function(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  return body(args);
  TD_PYTHON_CATCH(nullptr)
}

// Functions that give the GIL away return null for None: it may only be touched once it is back.
template <PyObject* (*body)(PyObject* args)>
PyObject* waiting(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  body(args);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

inline PyObject* none() { Py_RETURN_NONE; }

}  // namespace taeda::python
