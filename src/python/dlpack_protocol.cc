// The methods around DLPack's capsules, as the array API has them: the producer's `__dlpack__`,
// the consumer's `from_dlpack`. Work on the producer's stream is ordered before the consumer's by
// an event; nobody waits on the host.
#include "core/device_memory.h"
#include "device/device.h"
#include "device/stream.h"
#include "op/clone.h"
#include "op/detach.h"
#include "op/to_device.h"
#include "python/call.h"
#include "python/dlpack.h"
#include "python/objects.h"
#include "python/pinned.h"

namespace taeda::python {
namespace {

constexpr int64_t kNoStream = -1;        // do not synchronize
constexpr int64_t kLegacyStream = 1;     // the default stream
constexpr int64_t kPerThreadStream = 2;  // a default stream for each thread: not used here

// --- the producer ---

void refuse_export(const Tensor& x) {
  if (x.requires_grad()) {
    raise_python(PyExc_BufferError,
                 "Can't export tensors that require gradient, use tensor.detach()");
  }
  if (x.device().type == DeviceType::kCUDA && x.device().index != cuda::current_device()) {
    raise_python(PyExc_BufferError,
                 "Can't export tensors on a different CUDA device index. Expected: {}. Current "
                 "device: {}.",
                 static_cast<int>(x.device().index), cuda::current_device());
  }
}

// The stream that the consumer names, as the protocol numbers them.
cuda::Stream consumers_stream(int device, int64_t number) {
  if (number == kLegacyStream) return cuda::Stream::default_of(device);
  if (number == kPerThreadStream)
    raise_python(PyExc_BufferError, "per-thread default stream is not supported.");
  if (number == 0) raise_python(PyExc_AssertionError, "unsupported stream on CUDA: 0.");
  return cuda::Stream::external(device, reinterpret_cast<cuda::StreamHandle>(number));
}

// The protocol's number: None asks for the default stream, nothing for no synchronization.
int64_t stream_argument(PyObject* stream, bool is_cpu) {
  if (!stream || (is_cpu && stream == Py_None)) return kNoStream;
  if (stream == Py_None) return kLegacyStream;
  if (!PyLong_CheckExact(stream))
    raise_python(PyExc_TypeError, "stream must be ``int`` or ``none``");
  const int64_t number = PyLong_AsLongLong(stream);
  if (number == -1 && PyErr_Occurred()) throw PythonError();
  return number;
}

// What the current stream has been given comes before what the consumer gives to its own.
void hand_over(const Tensor& x, PyObject* stream) {
  const int64_t number = stream_argument(stream, x.device().is_cpu());
  if (number == kNoStream) return;
  if (x.device().is_cpu()) raise_python(PyExc_AssertionError, "stream should be None on cpu.");
  if (x.device().type != DeviceType::kCUDA) return;
  const int device = x.device().index;
  const cuda::Stream theirs = consumers_stream(device, number);
  const cuda::Stream mine = cuda::Stream::current(device);
  if (theirs.handle() == mine.handle()) return;
  cuda::Event event;
  event.record(mine);
  theirs.wait(event);
}

DLDevice pair_argument(PyObject* pair) {
  DLDevice device{};
  if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)
    raise_python(PyExc_TypeError,
                 "__dlpack__(): argument 'dl_device' must be tuple of ints, not {}",
                 type_name(pair));
  if (!PyArg_ParseTuple(pair, "ii", &device.type, &device.id)) throw PythonError();
  return device;
}

// x, or a copy where one is demanded or the device is another one.
Tensor placed(const Tensor& x, PyObject* dl_device, PyObject* copy) {
  const bool must = copy == Py_True;
  const Device to = dl_device ? device_of(pair_argument(dl_device)) : x.device();
  if (to == x.device()) return must ? op::clone(x, std::nullopt) : x;
  if (copy == Py_False) {
    raise_python(PyExc_ValueError,
                 "cannot move (i.e. copy=False) tensor from {} to {} without copying.", x.device(),
                 to);
  }
  return op::to_device(x, to, false);
}

bool wants_version_1(PyObject* max_version) {
  if (!max_version) return false;
  if (!PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) == 0)
    raise_python(PyExc_TypeError, "__dlpack__(): argument 'max_version' must be tuple, not {}",
                 type_name(max_version));
  const long major = PyLong_AsLong(PyTuple_GET_ITEM(max_version, 0));
  if (major == -1 && PyErr_Occurred()) throw PythonError();
  return major >= 1;
}

// --- the consumer ---

struct Request {
  PyRef kwargs = PyRef::check(PyDict_New());
  bool moves = false;  // the producer's device is another one than the wanted
  bool copied = true;  // the producer was asked for the copy
};

void set(const PyRef& kwargs, const char* name, const PyRef& value) {
  check_status(PyDict_SetItemString(kwargs.get(), name, value.get()));
}

void ask_for_device(Request& request, PyObject* producers, DLDevice given, Device wanted,
                    PyObject* copy) {
  const DLDevice target = dlpack_device(wanted);
  const PyRef pair = PyRef::check(Py_BuildValue("(ii)", target.type, target.id));
  request.moves = given != target;
  if (!request.moves) {
    set(request.kwargs, "dl_device", pair);
  } else if (copy == Py_False) {
    const PyRef text = PyRef::check(PyObject_Repr(producers));
    raise_python(PyExc_ValueError,
                 "cannot move DLPack tensor from device {} to ({}, {}) without copying. Set "
                 "copy=None or copy=True.",
                 utf8(text.get()), static_cast<int64_t>(target.type),
                 static_cast<int64_t>(target.id));
  }
}

// The number of the stream on which the memory will be used from now on.
PyRef stream_number(DLDevice given) {
  const Device device = device_of(given);
  cuda::check_device(device.index);
  const auto handle = reinterpret_cast<uintptr_t>(cuda::Stream::current(device.index).handle());
  return PyRef::check(PyLong_FromUnsignedLongLong(handle ? handle : kLegacyStream));
}

// Producers of older versions do not know all arguments: each TypeError takes one away.
PyRef ask_producer(PyObject* object, Request& request) {
  const PyRef method = PyRef::check(PyObject_GetAttrString(object, "__dlpack__"));
  const PyRef none = PyRef::check(PyTuple_New(0));
  const auto ask = [&] {
    return PyRef::adopt(
        call_python([&] { return PyObject_Call(method.get(), none.get(), request.kwargs.get()); }));
  };
  for (const char* next : {"max_version", "copy", "dl_device"}) {
    PyRef capsule = ask();
    if (capsule) return capsule;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
    PyErr_Clear();
    if (PyDict_GetItemString(request.kwargs.get(), next))
      check_status(PyDict_DelItemString(request.kwargs.get(), next));
    if (std::strcmp(next, "copy") == 0) request.copied = false;
  }
  return PyRef::check(ask().release());
}

DLDevice producers_device(PyObject* pair) {
  DLDevice device{};
  if (!PyTuple_Check(pair))
    raise_python(PyExc_TypeError, "from_dlpack(): __dlpack_device__() must give a tuple, not {}",
                 type_name(pair));
  if (!PyArg_ParseTuple(pair, "ii:__dlpack_device__", &device.type, &device.id))
    throw PythonError();
  return device;
}

Device wanted_device(PyObject* device) {
  if (!PyUnicode_Check(device) && !is_device(device))
    raise_python(PyExc_AssertionError, "from_dlpack: unsupported device type: {}",
                 type_name(device));
  return resolved(to_device(device));
}

}  // namespace

PyObject* to_dlpack(const Tensor& x, PyObject* stream, PyObject* max_version, PyObject* dl_device,
                    PyObject* copy) {
  refuse_export(x);
  hand_over(x, stream);
  const bool version_1 = wants_version_1(max_version);
  return make_capsule(placed(op::detach(x), dl_device, copy), version_1);
}

PyObject* dlpack_device_pair(const Tensor& x) {
  if (!has_memory(x.device()))
    raise_python(PyExc_ValueError, "Unknown device type {} for Dlpack", x.device());
  const DLDevice device = dlpack_device(x.device());
  const PyRef module = PyRef::check(PyImport_ImportModule("taeda.utils.dlpack"));
  const PyRef types = PyRef::check(PyObject_GetAttrString(module.get(), "DLDeviceType"));
  const PyRef type = PyRef::check(
      PyObject_CallFunction(types.get(), "i", is_pinned(x) ? DLDevice::kCudaHost : device.type));
  return Py_BuildValue("(Oi)", type.get(), device.id);
}

Tensor from_dlpack(PyObject* object, PyObject* device, PyObject* copy) {
  if (!PyObject_HasAttrString(object, "__dlpack__")) {
    if (device || copy)
      raise_python(PyExc_AssertionError,
                   "device and copy kwargs not supported when ext_tensor is already a DLPack "
                   "capsule.");
    return open_capsule(object);
  }
  Request request;
  set(request.kwargs, "max_version", PyRef::check(Py_BuildValue("(ii)", 1, 0)));
  if (copy) set(request.kwargs, "copy", PyRef::share(copy));
  const PyRef producers = PyRef::check(
      call_python([&] { return PyObject_CallMethod(object, "__dlpack_device__", nullptr); }));
  const DLDevice given = producers_device(producers.get());
  if (device) ask_for_device(request, producers.get(), given, wanted_device(device), copy);
  if (given.type == DLDevice::kCuda) set(request.kwargs, "stream", stream_number(given));
  const PyRef capsule = ask_producer(object, request);
  const Tensor result = open_capsule(capsule.get());
  if (request.moves) return op::to_device(result, wanted_device(device), false);
  return copy == Py_True && !request.copied ? op::clone(result, std::nullopt) : result;
}

}  // namespace taeda::python
