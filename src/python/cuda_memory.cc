// What taeda.cuda.memory asks of the allocators of device memory and of pinned memory.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/graph.h"
#include "device/memory.h"
#include "device/stream.h"
#include "python/cuda.h"
#include "python/memory_context.h"
#include "python/memory_dicts.h"

namespace taeda::python {
namespace {

// --- counters ---

PyRef pool_tuple(const PoolName& name) {
  return PyRef::check(Py_BuildValue("(LL)", static_cast<long long>(name.first),
                                    static_cast<long long>(name.second)));
}

PyObject* memory_stats(PyObject* args) {
  const int device = device_argument(args);
  PyRef dict = cuda_stats_dict(cuda::memory_stats(device));
  const int64_t most = cuda::allocator_options().max_split_bytes;
  set_int(dict.get(), "max_split_size", most == INT64_MAX ? -1 : most);
  PyRef pools = PyRef::check(PyDict_New());
  for (const auto& [name, levels] : cuda::private_reserved_bytes(device)) {
    const PyRef value = levels_dict(levels);
    check_status(PyDict_SetItem(pools.get(), pool_tuple(name).get(), value.get()));
  }
  check_status(PyDict_SetItemString(dict.get(), "reserved_bytes_by_private_pools", pools.get()));
  return dict.release();
}
PyObject* memory_limit(PyObject* args) {
  return PyLong_FromLongLong(cuda::memory_limit(device_argument(args)));
}
PyObject* reset_peak_stats(PyObject* args) {
  cuda::reset_peak_stats(device_argument(args));
  return none();
}
PyObject* reset_accumulated_stats(PyObject* args) {
  cuda::reset_accumulated_stats(device_argument(args));
  return none();
}

// --- snapshots and history ---

PyObject* memory_snapshot(PyObject* args) {
  return snapshot_list(cuda::memory_snapshot(device_argument(args))).release();
}
PyObject* memory_history(PyObject* args) {
  return history_list(cuda::memory_history(device_argument(args))).release();
}
PyObject* record_memory_history(PyObject* args) {
  int on = 0, clear = 0, all_frames = 0;
  long long max_events = 0;
  parse(args, "pLpp", &on, &max_events, &clear, &all_frames);
  keep_stacks(all_frames ? Stacks::kAll : Stacks::kLine);
  for (int device = 0; device < cuda::device_count(); device++)
    cuda::record_memory_history(device, on != 0, static_cast<size_t>(std::max(0LL, max_events)),
                                clear != 0);
  return none();
}
PyObject* allocation_frames(PyObject* args) {
  unsigned long long address = 0;
  parse(args, "K", &address);
  for (int device = 0; device < cuda::device_count(); device++) {
    const auto context = cuda::memory_context(device, reinterpret_cast<const void*>(address));
    if (context) return frames_list(context.get()).release();
  }
  return none();
}

// --- memory ---

PyObject* empty_cache(PyObject* args) {
  cuda::empty_cache(device_argument(args));
  return none();
}
PyObject* set_memory_limit(PyObject* args) {
  int device = 0;
  long long bytes = 0;
  parse(args, "iL", &device, &bytes);
  cuda::set_memory_limit(device, bytes);
  return none();
}
PyObject* allocate(PyObject* args) {
  long long bytes = 0, stream = 0;
  int device = 0;
  parse(args, "LiL", &bytes, &device, &stream);
  const cuda::StreamGuard guard({device, stream});
  return PyLong_FromVoidPtr(cuda::allocate(bytes, device));
}
PyObject* release(PyObject* args) {
  unsigned long long address = 0;
  int device = 0;
  parse(args, "Ki", &address, &device);
  cuda::release(reinterpret_cast<void*>(address), device);
  return none();
}
PyObject* set_allocator_options(PyObject* args) {
  const char* text = "";
  parse(args, "s", &text);
  cuda::set_allocator_options(text);
  return none();
}
PyObject* allocator_options(PyObject*) {
  const AllocatorOptions o = cuda::allocator_options();
  PyRef divisions = PyRef::check(PyDict_New());
  for (size_t i = 0; i < o.roundup_divisions.size(); i++)
    set_int(divisions.get(), std::to_string(1 << i).c_str(), o.roundup_divisions[i]);
  return Py_BuildValue(
      "{sssLsdsOsOsOsLsOsOsN}", "PYTORCH_CUDA_ALLOC_CONF", o.text.c_str(), "max_split_size",
      static_cast<long long>(o.max_split_bytes == INT64_MAX ? -1 : o.max_split_bytes),
      "garbage_collection_threshold", o.garbage_collection_threshold, "expandable_segments",
      o.expandable_segments ? Py_True : Py_False, "pinned_use_cuda_host_register",
      o.pinned_by_registering ? Py_True : Py_False, "pinned_use_background_threads",
      o.pinned_background_threads ? Py_True : Py_False, "pinned_num_register_threads",
      static_cast<long long>(o.pinned_register_threads), "release_lock_on_cudamalloc", Py_False,
      "graph_capture_record_stream_reuse", Py_False, "roundup_power2_divisions",
      divisions.release());
}

// --- private pools ---

PoolName name_of(long long first, long long second) { return {first, second}; }

PyObject* new_pool(PyObject* args) {
  int by_program = 0;
  parse(args, "p", &by_program);
  return pool_tuple(cuda::new_pool_name(by_program != 0)).release();
}
// (device, name, ...) of the functions below.
template <void (*use)(int device, const PoolName& name)>
PyObject* with_pool(PyObject* args) {
  int device = 0;
  long long first = 0, second = 0;
  parse(args, "i(LL)", &device, &first, &second);
  use(device, name_of(first, second));
  return none();
}
PyObject* retain_pool(PyObject* args) {
  int device = 0, use_on_oom = 0, no_split = 0;
  long long first = 0, second = 0;
  parse(args, "i(LL)pp", &device, &first, &second, &use_on_oom, &no_split);
  cuda::retain_pool(device, name_of(first, second), use_on_oom != 0, no_split != 0);
  return none();
}
PyObject* pool_uses(PyObject* args) {
  int device = 0;
  long long first = 0, second = 0;
  parse(args, "i(LL)", &device, &first, &second);
  return PyLong_FromLong(cuda::pool_uses(device, name_of(first, second)));
}

// --- pinned memory ---

PyRef times_dict(const cuda::PinnedStats::Times& t) {
  return PyRef::check(Py_BuildValue(
      "{sLsLsLsLsd}", "total", static_cast<long long>(t.total_us), "max",
      static_cast<long long>(t.max_us), "min", static_cast<long long>(t.min_us), "count",
      static_cast<long long>(t.count), "avg",
      t.count ? static_cast<double>(t.total_us) / static_cast<double>(t.count) : 0.0));
}
PyObject* pinned_stats(PyObject*) {
  const cuda::PinnedStats stats = cuda::pinned_stats();
  PyRef dict = PyRef::check(PyDict_New());
  const auto set = [&](const char* key, const PyRef& value) {
    check_status(PyDict_SetItemString(dict.get(), key, value.get()));
  };
  set("allocations", level_dict(stats.blocks));
  set("allocated_bytes", level_dict(stats.bytes));
  set("active_requests", level_dict(stats.active_blocks));
  set("active_bytes", level_dict(stats.active_bytes));
  set_int(dict.get(), "num_host_alloc", stats.blocks.added);
  set_int(dict.get(), "num_host_free", stats.blocks.freed);
  set("host_alloc_time", times_dict(stats.allocate_times));
  set("host_free_time", times_dict(stats.release_times));
  return dict.release();
}
template <void (*body)()>
PyObject* plain(PyObject*) {
  body();
  return none();
}

PyMethodDef functions[] = {
    {"_cuda_memory_stats", function<memory_stats>, METH_VARARGS, nullptr},
    {"_cuda_memory_limit", function<memory_limit>, METH_VARARGS, nullptr},
    {"_cuda_memory_snapshot", function<memory_snapshot>, METH_VARARGS, nullptr},
    {"_cuda_memory_history", function<memory_history>, METH_VARARGS, nullptr},
    {"_cuda_record_memory_history", function<record_memory_history>, METH_VARARGS, nullptr},
    {"_cuda_allocation_frames", function<allocation_frames>, METH_VARARGS, nullptr},
    {"_cuda_reset_peak_stats", function<reset_peak_stats>, METH_VARARGS, nullptr},
    {"_cuda_reset_accumulated_stats", function<reset_accumulated_stats>, METH_VARARGS, nullptr},
    {"_cuda_empty_cache", function<empty_cache>, METH_VARARGS, nullptr},
    {"_cuda_set_memory_limit", function<set_memory_limit>, METH_VARARGS, nullptr},
    {"_cuda_allocate", function<allocate>, METH_VARARGS, nullptr},
    {"_cuda_release", function<release>, METH_VARARGS, nullptr},
    {"_cuda_set_allocator_options", function<set_allocator_options>, METH_VARARGS, nullptr},
    {"_cuda_allocator_options", function<allocator_options>, METH_NOARGS, nullptr},
    {"_cuda_new_pool", function<new_pool>, METH_VARARGS, nullptr},
    {"_cuda_retain_pool", function<retain_pool>, METH_VARARGS, nullptr},
    {"_cuda_release_pool", function<with_pool<cuda::release_pool>>, METH_VARARGS, nullptr},
    {"_cuda_begin_use_of_pool", function<with_pool<cuda::begin_use_of_pool>>, METH_VARARGS,
     nullptr},
    {"_cuda_end_use_of_pool", function<with_pool<cuda::end_use_of_pool>>, METH_VARARGS, nullptr},
    {"_cuda_pool_uses", function<pool_uses>, METH_VARARGS, nullptr},
    {"_cuda_pinned_stats", function<pinned_stats>, METH_NOARGS, nullptr},
    {"_cuda_reset_peak_pinned_stats", function<plain<cuda::reset_peak_pinned_stats>>, METH_NOARGS,
     nullptr},
    {"_cuda_reset_accumulated_pinned_stats", function<plain<cuda::reset_accumulated_pinned_stats>>,
     METH_NOARGS, nullptr},
    {"_cuda_empty_pinned_cache", function<plain<cuda::empty_pinned_cache>>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_cuda_memory(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
  install_memory_context();
}

}  // namespace taeda::python
