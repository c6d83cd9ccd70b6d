// taeda._C._WorkerChannel: the ends of a channel between a trainer and a data-loading worker.
#include "data/worker_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "python/batch_message.h"
#include "python/module.h"
#include "python/operator_pause.h"
#include "python/storage_object.h"

namespace taeda::python {
namespace {

using data::Block;
using data::WorkerChannel;

struct ChannelObject {
  PyObject_HEAD std::shared_ptr<WorkerChannel> channel;  // null once it is retired
  int exports;
};

PyTypeObject* channel_type = nullptr;

ChannelObject* cast(PyObject* self) { return reinterpret_cast<ChannelObject*>(self); }

WorkerChannel& channel_of(PyObject* self) {
  if (!cast(self)->channel) raise_python(PyExc_ValueError, "_WorkerChannel: retired");
  if (cast(self)->channel->area().is_copy())
    raise_python(PyExc_RuntimeError,
                 "DataLoader: this process was forked while a loader was in use; only the process "
                 "that it was forked from can use that loader's workers");
  return *cast(self)->channel;
}

PyObject* make_object(std::shared_ptr<WorkerChannel> channel) {
  PyObject* self = PyRef::check(channel_type->tp_alloc(channel_type, 0)).release();
  new (&cast(self)->channel) std::shared_ptr<WorkerChannel>(std::move(channel));
  return self;
}

// _WorkerChannel(capacity, nbytes=1 << 36)
PyObject* channel_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"capacity", "nbytes", nullptr};
  unsigned int capacity;
  unsigned long long nbytes = 1ULL << 36;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "I|K:_WorkerChannel", const_cast<char**>(names),
                                   &capacity, &nbytes))
    return nullptr;
  return make_object(WorkerChannel::create(capacity, nbytes));
  TD_PYTHON_CATCH(nullptr)
}

void channel_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cast(self)->channel.~shared_ptr();
  type->tp_free(self);
  Py_DECREF(type);
}

// _open(handle): the worker's end of a channel.
PyObject* channel_open(PyObject*, PyObject* handle) {
  TD_PYTHON_TRY
  const int number = PyObject_AsFileDescriptor(handle);
  if (number < 0) return nullptr;
  return make_object(WorkerChannel::open(number));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* channel_serve(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  channel_of(self).serve();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* channel_fileno(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  return PyLong_FromLong(channel_of(self).area().handle());
  TD_PYTHON_CATCH(nullptr)
}

PyObject* channel_set_inherited(PyObject* self, PyObject* inherited) {
  TD_PYTHON_TRY
  channel_of(self).area().set_inherited(PyObject_IsTrue(inherited) == 1);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// send(tag, pickle, items): False when there is no memory to share left.
PyObject* channel_send(PyObject* self, PyObject* args) {
  TD_PYTHON_TRY
  long long tag;
  PyObject *pickle, *items;
  if (!PyArg_ParseTuple(args, "LO!O!:send", &tag, &PyBytes_Type, &pickle, &PyList_Type, &items))
    return nullptr;
  return PyBool_FromLong(send_message(channel_of(self), tag, pickle, items));
  TD_PYTHON_CATCH(nullptr)
}

// receive() -> (tag, pickle, items, nbytes) or None
PyObject* channel_receive(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  Block* const message = channel_of(self).pop();
  if (!message) Py_RETURN_NONE;
  return unpack_message(channel_of(self), message);
  TD_PYTHON_CATCH(nullptr)
}

PyObject* channel_has_message(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  return PyBool_FromLong(channel_of(self).has_message());
  TD_PYTHON_CATCH(nullptr)
}

// empty(nbytes): a storage that can be sent as it is, None when there is no memory for it, or in a
// forked child.
PyObject* channel_empty(PyObject* self, PyObject* nbytes) {
  TD_PYTHON_TRY
  if (cast(self)->channel && cast(self)->channel->area().is_copy()) Py_RETURN_NONE;
  const long long n = PyLong_AsLongLong(nbytes);
  if (n < 0 && PyErr_Occurred()) return nullptr;
  Block* const block = channel_of(self).allocate(static_cast<size_t>(n));
  if (!block) Py_RETURN_NONE;
  return wrap(channel_of(self).area().storage(block, block->data(), n));
  TD_PYTHON_CATCH(nullptr)
}

// wait(seconds): the worker sleeps until there is something to do.
PyObject* channel_wait(PyObject* self, PyObject* seconds) {
  TD_PYTHON_TRY
  const double time = PyFloat_AsDouble(seconds);
  if (time < 0 && PyErr_Occurred()) return nullptr;
  {
    GilRelease gil;
    const OutsideOperators waits;
    channel_of(self).wait_for_task(static_cast<int64_t>(time * 1e9));
  }
  if (PyErr_CheckSignals() < 0) return nullptr;
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* channel_arm(PyObject* self, PyObject* armed) {
  TD_PYTHON_TRY
  channel_of(self).arm(PyObject_IsTrue(armed) == 1);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* channel_notify(PyObject* self, PyObject* handle) {
  TD_PYTHON_TRY
  const long number = PyLong_AsLong(handle);
  if (number < 0 && PyErr_Occurred()) return nullptr;
  channel_of(self).notify(static_cast<int>(number));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* channel_close(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  channel_of(self).close();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// retire(): nothing more will be sent; only what batches of this process lie in remains.
PyObject* channel_retire(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  if (cast(self)->exports > 0)
    raise_python(PyExc_BufferError, "_WorkerChannel: somebody looks at the cells");
  channel_of(self).area().retire();
  cast(self)->channel.reset();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// stack(): what stands at the file's end.
PyObject* channel_stack(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const std::span<const char> text = channel_of(self).stack();
  return PyBytes_FromStringAndSize(text.data(),
                                   static_cast<Py_ssize_t>(strnlen(text.data(), text.size())));
  TD_PYTHON_CATCH(nullptr)
}

// stack_offset(): where in the file that is.
PyObject* channel_stack_offset(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const size_t end = channel_of(self).area().bytes();
  return PyLong_FromSize_t(end - WorkerChannel::kStackBytes);
  TD_PYTHON_CATCH(nullptr)
}

PyObject* channel_closed(PyObject* self, void*) {
  TD_PYTHON_TRY
  return PyBool_FromLong(channel_of(self).closed());
  TD_PYTHON_CATCH(nullptr)
}

// held(): (blocks, bytes) of all channels that storages of this process are in.
PyObject* channel_held(PyObject*, PyObject*) {
  return Py_BuildValue("(nn)", static_cast<Py_ssize_t>(data::SharedArea::held_blocks()),
                       static_cast<Py_ssize_t>(data::SharedArea::held_bytes()));
}

// event(): a new eventfd that does not block.
PyObject* channel_event(PyObject*, PyObject*) {
  const int handle = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (handle < 0) return PyErr_SetFromErrno(PyExc_OSError);
  return PyLong_FromLong(handle);
}

// The cells, as integers of 64 bits.
int get_buffer(PyObject* self, Py_buffer* view, int) {
  TD_PYTHON_TRY
  static Py_ssize_t shape[] = {WorkerChannel::kCells}, strides[] = {sizeof(int64_t)};
  const std::span<int64_t> cells = channel_of(self).cells();
  *view = Py_buffer{};
  view->buf = cells.data();
  view->obj = new_ref(self);
  view->len = static_cast<Py_ssize_t>(cells.size_bytes());
  view->itemsize = sizeof(int64_t);
  view->format = const_cast<char*>("q");
  view->ndim = 1;
  view->shape = shape;
  view->strides = strides;
  cast(self)->exports++;
  return 0;
  TD_PYTHON_CATCH(-1)
}
void release_buffer(PyObject* self, Py_buffer*) { cast(self)->exports--; }

PyMethodDef methods[] = {
    {"_open", channel_open, METH_O | METH_STATIC, nullptr},
    {"held", channel_held, METH_NOARGS | METH_STATIC, nullptr},
    {"event", channel_event, METH_NOARGS | METH_STATIC, nullptr},
    {"serve", channel_serve, METH_NOARGS, nullptr},
    {"fileno", channel_fileno, METH_NOARGS, nullptr},
    {"set_inherited", channel_set_inherited, METH_O, nullptr},
    {"send", channel_send, METH_VARARGS, nullptr},
    {"receive", channel_receive, METH_NOARGS, nullptr},
    {"has_message", channel_has_message, METH_NOARGS, nullptr},
    {"empty", channel_empty, METH_O, nullptr},
    {"wait", channel_wait, METH_O, nullptr},
    {"arm", channel_arm, METH_O, nullptr},
    {"notify", channel_notify, METH_O, nullptr},
    {"close", channel_close, METH_NOARGS, nullptr},
    {"retire", channel_retire, METH_NOARGS, nullptr},
    {"stack", channel_stack, METH_NOARGS, nullptr},
    {"stack_offset", channel_stack_offset, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"closed", channel_closed, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(channel_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(channel_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {Py_tp_doc, const_cast<char*>("_WorkerChannel(capacity, nbytes)\n\nMemory and messages that a "
                                  "trainer shares with a data-loading worker.")},
    {0, nullptr},
};
PyType_Spec spec = {"taeda._C._WorkerChannel", sizeof(ChannelObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void add_worker_channel(PyObject* module) {
  channel_type = add_type(module, "_WorkerChannel", &spec);
}

}  // namespace taeda::python
