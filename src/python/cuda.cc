// What taeda.cuda and taeda.accelerator ask of the device layer: numbers in, numbers out. The
// classes that users see (Stream, Event, device) are written in Python around it.

#include <utility>

#include "device/device.h"
#include "device/memory.h"
#include "device/modules.h"
#include "device/put_off.h"
#include "device/stream.h"
#include "ops/device_bounds.h"
#include "python/autograd_support.h"
#include "python/cuda.h"
#include "python/memory_dicts.h"

namespace taeda::python {
namespace {

// --- devices ---

PyObject* device_count(PyObject*) { return PyLong_FromLong(cuda::device_count()); }
PyObject* is_initialized(PyObject*) { return PyBool_FromLong(cuda::is_initialized()); }
PyObject* is_forked_child(PyObject*) { return PyBool_FromLong(cuda::is_forked_child()); }
PyObject* is_simulated(PyObject*) { return PyBool_FromLong(cuda::simulated()); }
PyObject* has_kernels(PyObject*) { return PyBool_FromLong(cuda::has_kernels()); }

PyObject* list_of(const std::vector<std::string>& names) {
  PyRef list = PyRef::check(PyList_New(0));
  for (const std::string& name : names) {
    const PyRef text = PyRef::check(PyUnicode_FromString(name.c_str()));
    if (PyList_Append(list.get(), text.get()) < 0) throw PythonError();
  }
  return list.release();
}
PyObject* kernel_names(PyObject*) { return list_of(cuda::kernel_names()); }
PyObject* loaded_kernels(PyObject* args) {
  return list_of(cuda::loaded_kernels(device_argument(args)));
}
PyObject* has_cubins(PyObject* args) {
  return PyBool_FromLong(cuda::has_cubins(device_argument(args)));
}
PyObject* preload(PyObject* args) {
  int device = 0;
  PyObject* list = nullptr;
  parse(args, "iO!", &device, &PyList_Type, &list);
  std::vector<std::string> names;
  for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
    const char* const name = PyUnicode_AsUTF8(PyList_GetItem(list, i));
    if (!name) throw PythonError();
    names.emplace_back(name);
  }
  {
    const GilRelease gil;
    cuda::preload(device, names);
  }
  return none();
}

PyObject* how_to_find_devices(PyObject*) {
  const std::string_view text = cuda::how_to_find_devices();
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

// _cuda_with_list(function, argument) -> function(argument), in which pointwise calls of one kind
// are one launch
PyObject* with_list(PyObject* args) {
  PyObject *called = nullptr, *argument = nullptr;
  parse(args, "OO", &called, &argument);
  PyRef result;
  cuda::with_list([&] { result = PyRef::check(PyObject_CallOneArg(called, argument)); });
  return result.release();
}

PyObject* initialize(PyObject* args) {
  const char* what = "";
  parse(args, "|s", &what);
  cuda::initialize(what);
  return none();
}

PyObject* current_device(PyObject*) { return PyLong_FromLong(cuda::current_device()); }
// Whether the indices are a device's, which looks for what is outside [0, size): `found`, with
// holes for the index and the size, is raised when the host next waits.
PyObject* check_indices(PyObject* args) {
  PyObject* index = nullptr;
  long long size = 0;
  const char *found = "", *below = "";
  parse(args, "OLs|s", &index, &size, &found, &below);
  const on_device::Outside outside{found, below, ErrorKind::kRuntime};
  return PyBool_FromLong(
      on_device::checks_indices(tensor_or_none(index, "_check_indices"), size, outside));
}

PyObject* set_device(PyObject* args) {
  cuda::set_device(device_argument(args));
  return none();
}

PyObject* synchronize(PyObject* args) {
  const int device = device_argument(args);
  GilRelease gil;
  cuda::synchronize_device(device);
  return nullptr;
}

PyObject* properties(PyObject* args) {
  const cuda::Properties& p = cuda::properties(device_argument(args));
  PyRef dict = PyRef::check(Py_BuildValue("{sssy#}", "name", p.name.c_str(), "uuid", p.uuid.bytes,
                                          static_cast<Py_ssize_t>(sizeof(p.uuid.bytes))));
  const std::pair<const char*, int64_t> numbers[] = {
      {"major", p.major},
      {"minor", p.minor},
      {"total_memory", p.total_memory},
      {"multi_processor_count", p.multiprocessors},
      {"warp_size", p.warp_size},
      {"max_threads_per_multi_processor", p.threads_per_multiprocessor},
      {"max_threads_per_block", p.threads_per_block},
      {"regs_per_multiprocessor", p.registers_per_multiprocessor},
      {"shared_memory_per_block", p.shared_memory_per_block},
      {"shared_memory_per_block_optin", p.shared_memory_per_block_optin},
      {"shared_memory_per_multiprocessor", p.shared_memory_per_multiprocessor},
      {"L2_cache_size", p.l2_cache_bytes},
      {"clock_rate", p.clock_rate},
      {"memory_clock_rate", p.memory_clock_rate},
      {"memory_bus_width", p.memory_bus_width},
      {"pci_domain_id", p.pci_domain},
      {"pci_bus_id", p.pci_bus},
      {"pci_device_id", p.pci_device},
      {"is_integrated", p.integrated},
      {"is_multi_gpu_board", p.multi_gpu_board},
  };
  for (const auto& [name, value] : numbers) set_int(dict.get(), name, value);
  return dict.release();
}

PyObject* memory_info(PyObject* args) {
  const cuda::MemoryInfo info = cuda::memory_info(device_argument(args));
  return Py_BuildValue("LL", static_cast<long long>(info.free), static_cast<long long>(info.total));
}

PyObject* can_access_peer(PyObject* args) {
  int device = 0, peer = 0;
  parse(args, "ii", &device, &peer);
  return PyBool_FromLong(cuda::can_access_peer(device, peer));
}

// --- streams: (device, number) ---

PyObject* stream_from_pool(PyObject* args) {
  int device = 0, priority = 0;
  parse(args, "ii", &device, &priority);
  return PyLong_FromLongLong(cuda::Stream::from_pool(device, priority).id);
}
PyObject* stream_external(PyObject* args) {
  int device = 0;
  unsigned long long handle = 0;
  parse(args, "iK", &device, &handle);
  return PyLong_FromLongLong(
      cuda::Stream::external(device, reinterpret_cast<cuda::StreamHandle>(handle)).id);
}
PyObject* current_stream(PyObject* args) {
  const int device = device_argument(args);
  cuda::check_device(device);
  return PyLong_FromLongLong(cuda::Stream::current(device).id);
}
PyObject* set_current_stream(PyObject* args) {
  cuda::set_current_stream(stream_argument(args));
  return none();
}
PyObject* stream_query(PyObject* args) { return PyBool_FromLong(stream_argument(args).query()); }
PyObject* stream_synchronize(PyObject* args) {
  const cuda::Stream stream = stream_argument(args);
  GilRelease gil;
  stream.synchronize();
  return nullptr;
}
PyObject* stream_priority(PyObject* args) {
  return PyLong_FromLong(stream_argument(args).priority());
}
PyObject* stream_handle(PyObject* args) {
  return PyLong_FromVoidPtr(stream_argument(args).handle());
}

// --- events ---

struct EventObject {
  PyObject_HEAD cuda::Event event;
};
EventObject* cast(PyObject* object) { return reinterpret_cast<EventObject*>(object); }
PyTypeObject* event_type = nullptr;

PyObject* event_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"enable_timing", "blocking", "interprocess", nullptr};
  int timing = 0, blocking = 0, interprocess = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|ppp:Event", const_cast<char**>(names), &timing,
                                   &blocking, &interprocess))
    return nullptr;
  TD_CHECK_AS(ErrorKind::kRuntime, cuda::device_count() > 0,
              "Tried to instantiate dummy base class Event: no CUDA device was found");
  TD_CHECK_IMPLEMENTED(!interprocess, "torch.cuda.Event: interprocess events");
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  new (&cast(self)->event) cuda::Event(timing != 0, blocking != 0);
  return self;
  TD_PYTHON_CATCH(nullptr)
}
void event_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cast(self)->event.~Event();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* event_record(PyObject* self, PyObject* args) {
  TD_PYTHON_TRY
  cast(self)->event.record(stream_argument(args));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* event_wait(PyObject* self, PyObject* args) {
  TD_PYTHON_TRY
  stream_argument(args).wait(cast(self)->event);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* event_query(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  return PyBool_FromLong(cast(self)->event.query());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* event_synchronize(PyObject* self, PyObject*) {
  TD_PYTHON_TRY {
    GilRelease gil;
    cast(self)->event.synchronize();
  }
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* event_elapsed(PyObject* self, PyObject* end) {
  TD_PYTHON_TRY
  if (!PyObject_TypeCheck(end, event_type))
    raise_python(PyExc_TypeError, "elapsed_time(): expected an Event, got {}", type_name(end));
  return PyFloat_FromDouble(static_cast<double>(cast(self)->event.elapsed_ms(cast(end)->event)));
  TD_PYTHON_CATCH(nullptr)
}
PyObject* event_handle(PyObject* self, void*) {
  return PyLong_FromVoidPtr(cast(self)->event.handle());
}
PyObject* event_device(PyObject* self, void*) {
  return PyLong_FromLong(cast(self)->event.device());
}

PyMethodDef event_methods[] = {
    {"_record", event_record, METH_VARARGS, nullptr},
    {"_wait", event_wait, METH_VARARGS, nullptr},
    {"query", event_query, METH_NOARGS,
     "query() -> bool\n\nWhether the work that was recorded has been done."},
    {"synchronize", event_synchronize, METH_NOARGS,
     "synchronize() -> None\n\nWaits until the work that was recorded has been done."},
    {"elapsed_time", event_elapsed, METH_O,
     "elapsed_time(end_event) -> float\n\nMilliseconds from this event to the other one."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef event_getset[] = {
    {"cuda_event", event_handle, nullptr, "The driver's handle.", nullptr},
    {"_device_index", event_device, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot event_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(event_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(event_dealloc)},
    {Py_tp_methods, event_methods},
    {Py_tp_getset, event_getset},
    {0, nullptr},
};
PyType_Spec event_spec = {"taeda._C._CudaEventBase", sizeof(EventObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, event_slots};

PyMethodDef functions[] = {
    {"_cuda_device_count", function<device_count>, METH_NOARGS, nullptr},
    {"_cuda_is_initialized", function<is_initialized>, METH_NOARGS, nullptr},
    {"_cuda_is_forked_child", function<is_forked_child>, METH_NOARGS, nullptr},
    {"_cuda_is_simulated", function<is_simulated>, METH_NOARGS, nullptr},
    {"_cuda_has_kernels", function<has_kernels>, METH_NOARGS, nullptr},
    {"_cuda_kernel_names", function<kernel_names>, METH_NOARGS, nullptr},
    {"_cuda_has_cubins", function<has_cubins>, METH_VARARGS, nullptr},
    {"_cuda_loaded_kernels", function<loaded_kernels>, METH_VARARGS, nullptr},
    {"_cuda_preload", function<preload>, METH_VARARGS, nullptr},
    {"_cuda_with_list", function<with_list>, METH_VARARGS, nullptr},
    {"_cuda_initialize", function<initialize>, METH_VARARGS, nullptr},
    {"_check_indices", function<check_indices>, METH_VARARGS, nullptr},
    {"_cuda_how_to_find_devices", function<how_to_find_devices>, METH_NOARGS, nullptr},
    {"_cuda_current_device", function<current_device>, METH_NOARGS, nullptr},
    {"_cuda_set_device", function<set_device>, METH_VARARGS, nullptr},
    {"_cuda_synchronize", waiting<synchronize>, METH_VARARGS, nullptr},
    {"_cuda_properties", function<properties>, METH_VARARGS, nullptr},
    {"_cuda_memory_info", function<memory_info>, METH_VARARGS, nullptr},
    {"_cuda_can_access_peer", function<can_access_peer>, METH_VARARGS, nullptr},
    {"_cuda_stream_from_pool", function<stream_from_pool>, METH_VARARGS, nullptr},
    {"_cuda_stream_external", function<stream_external>, METH_VARARGS, nullptr},
    {"_cuda_current_stream", function<current_stream>, METH_VARARGS, nullptr},
    {"_cuda_set_current_stream", function<set_current_stream>, METH_VARARGS, nullptr},
    {"_cuda_stream_query", function<stream_query>, METH_VARARGS, nullptr},
    {"_cuda_stream_synchronize", waiting<stream_synchronize>, METH_VARARGS, nullptr},
    {"_cuda_stream_priority", function<stream_priority>, METH_VARARGS, nullptr},
    {"_cuda_stream_handle", function<stream_handle>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_cuda(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
  add_cuda_memory(module);
  add_cuda_graphs(module);
  event_type = add_type(module, "_CudaEventBase", &event_spec);
}

}  // namespace taeda::python
