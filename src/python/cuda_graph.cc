// _CUDAGraph: the graphs of the device layer as Python objects; torch.cuda.CUDAGraph is its child.
#include "device/graph.h"

#include <optional>
#include <string>
#include <utility>

#include "device/device.h"
#include "python/cuda.h"

namespace taeda::python {
namespace {

struct GraphObject {
  PyObject_HEAD cuda::CudaGraph graph;
};
cuda::CudaGraph& cast(PyObject* object) { return reinterpret_cast<GraphObject*>(object)->graph; }

PyObject* graph_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"keep_graph", nullptr};
  int keep = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:CUDAGraph", const_cast<char**>(names), &keep))
    return nullptr;
  TD_CHECK(cuda::device_count() > 0,
           "Tried to instantiate dummy base class _CUDAGraph: no CUDA device was found");
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  new (&cast(self)) cuda::CudaGraph(keep != 0);
  return self;
  TD_PYTHON_CATCH(nullptr)
}
void graph_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cast(self).~CudaGraph();
  type->tp_free(self);
  Py_DECREF(type);
}

cuda::CaptureMode mode_of(const std::string& name) {
  using cuda::CaptureMode;
  for (const auto& [known, mode] : {std::pair{"global", CaptureMode::kGlobal},
                                    std::pair{"thread_local", CaptureMode::kThreadLocal},
                                    std::pair{"relaxed", CaptureMode::kRelaxed}})
    if (name == known) return mode;
  raise_python(
      PyExc_RuntimeError,
      "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {}", name);
}

PyObject* graph_capture_begin(PyObject* self, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"pool", "capture_error_mode", nullptr};
  PyObject* pool = Py_None;
  const char* mode = "global";
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Os:capture_begin", const_cast<char**>(names),
                                   &pool, &mode))
    return nullptr;
  std::optional<PoolName> name;
  if (pool != Py_None) {
    long long first = 0, second = 0;
    if (!PyTuple_Check(pool) || !PyArg_ParseTuple(pool, "LL", &first, &second)) {
      PyErr_Clear();
      raise_python(PyExc_TypeError,
                   "capture_begin(): pool must be what graph_pool_handle() or a graph's pool() "
                   "gives, got {}",
                   type_name(pool));
    }
    name = PoolName{first, second};
  }
  cast(self).capture_begin(name, mode_of(mode));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* graph_register_generator(PyObject* self, PyObject* generator) {
  TD_PYTHON_TRY
  if (!is_generator(generator))
    raise_python(PyExc_TypeError, "register_generator_state(): expected a torch.Generator, got {}",
                 type_name(generator));
  cast(self).register_generator(*reinterpret_cast<GeneratorObject*>(generator)->generator);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

template <void (cuda::CudaGraph::*method)()>
PyObject* graph_call(PyObject* self, PyObject*) {
  TD_PYTHON_TRY(cast(self).*method)();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* graph_pool(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const PoolName name = cast(self).pool();
  return Py_BuildValue("(LL)", static_cast<long long>(name.first),
                       static_cast<long long>(name.second));
  TD_PYTHON_CATCH(nullptr)
}
PyObject* graph_debug_dump(PyObject* self, PyObject* path) {
  TD_PYTHON_TRY
  const char* const text = PyUnicode_AsUTF8(path);
  if (!text) return nullptr;
  cast(self).debug_dump(text);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* graph_raw(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  return PyLong_FromVoidPtr(cast(self).graph());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* graph_raw_exec(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  return PyLong_FromVoidPtr(cast(self).exec());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* graph_node_count(PyObject* self, void*) {
  return PyLong_FromSize_t(cast(self).node_count());
}

using cuda::CudaGraph;
PyMethodDef graph_methods[] = {
    {"capture_begin",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(graph_capture_begin)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"register_generator_state", graph_register_generator, METH_O, nullptr},
    {"capture_end", graph_call<&CudaGraph::capture_end>, METH_NOARGS, nullptr},
    {"instantiate", graph_call<&CudaGraph::instantiate>, METH_NOARGS, nullptr},
    {"replay", graph_call<&CudaGraph::replay>, METH_NOARGS, nullptr},
    {"reset", graph_call<&CudaGraph::reset>, METH_NOARGS, nullptr},
    {"enable_debug_mode", graph_call<&CudaGraph::keep_for_dump>, METH_NOARGS, nullptr},
    {"pool", graph_pool, METH_NOARGS, nullptr},
    {"debug_dump", graph_debug_dump, METH_O, nullptr},
    {"raw_cuda_graph", graph_raw, METH_NOARGS, nullptr},
    {"raw_cuda_graph_exec", graph_raw_exec, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef graph_getset[] = {
    {"_node_count", graph_node_count, nullptr, "How many pieces of work it has.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot graph_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(graph_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(graph_dealloc)},
    {Py_tp_methods, graph_methods},
    {Py_tp_getset, graph_getset},
    {0, nullptr},
};
PyType_Spec graph_spec = {"taeda._C._CUDAGraph", sizeof(GraphObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, graph_slots};

PyObject* is_capturing(PyObject* args) {
  return PyBool_FromLong(cuda::is_capturing(device_argument(args)));
}
PyObject* stream_is_capturing(PyObject* args) {
  return PyBool_FromLong(cuda::is_capturing(stream_argument(args)));
}

PyMethodDef functions[] = {
    {"_cuda_is_capturing", function<is_capturing>, METH_VARARGS, nullptr},
    {"_cuda_stream_is_capturing", function<stream_is_capturing>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_cuda_graphs(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
  add_type(module, "_CUDAGraph", &graph_spec);
}

}  // namespace taeda::python
