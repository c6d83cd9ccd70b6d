// What torch.multiprocessing asks of the core.
#include <csignal>

#include "base/parent_watch.h"
#include "base/unix_sockets.h"
#include "core/shared_memory.h"
#include "python/arguments.h"
#include "python/call.h"
#include "python/file_lock.h"
#include "python/module.h"
#include "python/shared_name.h"

namespace taeda::python {
namespace {

// _end_with_process(pid)
PyObject* end_with(PyObject*, PyObject* pid) {
  TD_PYTHON_TRY
  const int64_t number = to_int(pid);
  if (number != static_cast<pid_t>(number))
    raise_python(PyExc_ValueError, "end_with_process: {} is no process's number", number);
  end_with_process(static_cast<pid_t>(number));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* number_of_watch_signal(PyObject*, PyObject*) { return PyLong_FromLong(watch_signal()); }

// Names are what UntypedStorage._send() returns.
PyObject* drop_name(PyObject*, PyObject* name) {
  TD_PYTHON_TRY
  drop_shared(shared_name(name));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
// _locate_shared(names, inode, network): in which socket messages are; inode -1: with this process,
// -2: taken out of it.
PyObject* locate_names(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* names;
  long long inode, network;
  if (!PyArg_ParseTuple(args, "O!LL:_locate_shared", &PyList_Type, &names, &inode, &network))
    return nullptr;
  const uint32_t location = inode == -1   ? kWithSender
                            : inode == -2 ? kReceived
                                          : static_cast<uint32_t>(inode);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++)
    set_message_location(shared_name(PyList_GET_ITEM(names, i)), location,
                         static_cast<uint64_t>(network));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
// _find_socket(inode): the network namespace in which a Unix socket exists; 0 where it is not
// found.
PyObject* find_socket(PyObject*, PyObject* inode) {
  TD_PYTHON_TRY
  const int64_t number = to_int(inode);
  if (number <= 0 || number >= int64_t{kReceived}) return PyLong_FromLong(0);
  UnixSockets sockets;
  const bool exists = sockets.find(static_cast<uint32_t>(number)) == UnixSockets::State::kExists;
  return PyLong_FromUnsignedLongLong(exists ? UnixSockets::network() : 0);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* is_name_under_way(PyObject*, PyObject* name) {
  TD_PYTHON_TRY
  return PyBool_FromLong(is_under_way(shared_name(name)));
  TD_PYTHON_CATCH(nullptr)
}
PyObject* is_name_mapped(PyObject*, PyObject* name) {
  TD_PYTHON_TRY
  return PyBool_FromLong(is_mapped(shared_name(name)));
  TD_PYTHON_CATCH(nullptr)
}
PyObject* descriptor_of(PyObject*, PyObject* name) {
  TD_PYTHON_TRY
  return PyLong_FromLong(segment_descriptor(shared_name(name)));
  TD_PYTHON_CATCH(nullptr)
}
// (pid, descriptor) of the process that has made the segment.
PyObject* creator_of(PyObject*, PyObject* name) {
  TD_PYTHON_TRY
  const SharedName known = shared_name(name);
  return Py_BuildValue("ii", known.creator, known.creator_descriptor);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* map_descriptor(PyObject*, PyObject* descriptor) {
  TD_PYTHON_TRY
  map_segment(static_cast<int>(to_int(descriptor)));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* stats(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  const SharedMemoryStats s = shared_memory_stats();
  return Py_BuildValue("{sLsLsLsLsL}", "segments", static_cast<long long>(s.segments),
                       "own_segments", static_cast<long long>(s.own_segments), "descriptors",
                       static_cast<long long>(s.descriptors), "blocks",
                       static_cast<long long>(s.blocks), "address_space_bytes",
                       static_cast<long long>(s.address_space_bytes));
  TD_PYTHON_CATCH(nullptr)
}

// _interrupt_when_dropped(): an object whose end shows Ctrl-C to the main thread.
PyObject* interrupt_when_dropped(PyObject*, PyObject*) {
  static char nothing;
  return PyCapsule_New(&nothing, nullptr, [](PyObject*) { PyErr_SetInterruptEx(SIGINT); });
}

PyMethodDef functions[] = {
    {"_drop_shared", drop_name, METH_O,
     "The message with this name will not be sent, or not be received."},
    {"_locate_shared", locate_names, METH_VARARGS,
     "Says in which socket messages with these names are."},
    {"_find_socket", find_socket, METH_O, "The network namespace of a Unix socket."},
    {"_is_shared_under_way", is_name_under_way, METH_O,
     "Whether the message with this name may still be received or dropped."},
    {"_is_shared_mapped", is_name_mapped, METH_O, "Whether the name's segment is mapped here."},
    {"_shared_descriptor", descriptor_of, METH_O,
     "The descriptor of the name's segment, which keeps it; -1 when it is closed."},
    {"_shared_creator", creator_of, METH_O, "(pid, descriptor) of the segment's creator."},
    {"_map_segment", map_descriptor, METH_O,
     "Maps a segment of shared memory and takes over its descriptor."},
    {"_shared_memory_stats", stats, METH_NOARGS,
     "What this process maps of shared memory: segments, descriptors, blocks, address space."},
    {"_end_with_process", end_with, METH_O,
     "_end_with_process(pid)\n\nKills this process as soon as the other one has ended."},
    {"_watch_signal", number_of_watch_signal, METH_NOARGS,
     "The signal that the threads behind _end_with_process take where all others block it."},
    {"_interrupt_when_dropped", interrupt_when_dropped, METH_NOARGS,
     "An object whose end shows Ctrl-C to the main thread, later than where it is let go of."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_processes(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
  add_file_lock(module);
}

}  // namespace taeda::python
