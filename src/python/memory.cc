// What the CPU's allocator tells Python (taeda.cpu), and what the machine has left.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/block_list.h"
#include "base/cgroup.h"
#include "base/fail_allocation.h"
#include "core/allocator.h"
#include "python/memory_dicts.h"
#include "python/module.h"

namespace taeda::python {
namespace {

void set_item(PyObject* dict, const char* key, PyObject* value) {
  const PyRef owned = PyRef::check(value);
  check_status(PyDict_SetItemString(dict, key, owned.get()));
}
void set_address(PyObject* dict, const void* address) {
  set_item(dict, "address", PyLong_FromVoidPtr(const_cast<void*>(address)));
}

}  // namespace

void set_int(PyObject* dict, const char* key, int64_t value) {
  set_item(dict, key, PyLong_FromLongLong(value));
}

PyRef level_dict(const MemoryStats::Level& l) {
  return PyRef::check(Py_BuildValue("{sLsLsLsL}", "current", static_cast<long long>(l.current),
                                    "peak", static_cast<long long>(l.peak), "allocated",
                                    static_cast<long long>(l.added), "freed",
                                    static_cast<long long>(l.freed)));
}

PyRef levels_dict(const MemoryStats::Levels& levels) {
  PyRef dict = PyRef::check(PyDict_New());
  set_item(dict.get(), "all", level_dict(levels).release());
  set_item(dict.get(), "small_pool", level_dict(levels.small_pool).release());
  set_item(dict.get(), "large_pool", level_dict(levels.large_pool).release());
  return dict;
}

PyRef cuda_stats_dict(const MemoryStats& stats) {
  PyRef dict = PyRef::check(PyDict_New());
  const std::pair<const char*, const MemoryStats::Levels*> levels[] = {
      {"allocation", &stats.blocks},
      {"segment", &stats.segments},
      {"active", &stats.active_blocks},
      {"inactive_split", &stats.inactive_split},
      {"allocated_bytes", &stats.allocated_bytes},
      {"reserved_bytes", &stats.reserved_bytes},
      {"active_bytes", &stats.active_bytes},
      {"inactive_split_bytes", &stats.inactive_split_bytes},
      {"requested_bytes", &stats.requested_bytes},
  };
  for (const auto& [name, level] : levels)
    set_item(dict.get(), name, levels_dict(*level).release());
  set_item(dict.get(), "oversize_allocations", level_dict(stats.oversize_blocks).release());
  set_item(dict.get(), "oversize_segments", level_dict(stats.oversize_segments).release());
  set_int(dict.get(), "num_alloc_retries", stats.collections);
  set_int(dict.get(), "num_ooms", stats.out_of_memory);
  set_int(dict.get(), "num_sync_all_streams", stats.waits);
  set_int(dict.get(), "num_device_alloc", stats.device_allocations);
  set_int(dict.get(), "num_device_free", stats.device_releases);
  set_int(dict.get(), "num_oom_rejections", stats.rejected);
  return dict;
}

PyRef stats_dict(const MemoryStats& stats) {
  PyRef dict = PyRef::check(PyDict_New());
  const auto level = [](const MemoryStats::Level& l) { return level_dict(l).release(); };
  set_item(dict.get(), "allocation", level(stats.blocks));
  set_item(dict.get(), "segment", level(stats.segments));
  set_item(dict.get(), "allocated_bytes", level(stats.allocated_bytes));
  set_item(dict.get(), "requested_bytes", level(stats.requested_bytes));
  set_item(dict.get(), "reserved_bytes", level(stats.reserved_bytes));
  set_item(dict.get(), "pending_bytes", level(stats.pending_bytes));
  set_int(dict.get(), "num_alloc_retries", stats.collections);
  set_int(dict.get(), "num_ooms", stats.out_of_memory);
  set_int(dict.get(), "num_device_alloc", stats.device_allocations);
  set_int(dict.get(), "num_device_free", stats.device_releases);
  return dict;
}

PyRef frames_list(const MemoryContext* context) {
  PyRef list = PyRef::check(PyList_New(0));
  if (!context) return list;
  for (const auto& frame : context->frames()) {
    const PyRef item =
        PyRef::check(Py_BuildValue("{sssiss}", "filename", frame.file.c_str(), "line", frame.line,
                                   "name", frame.function.c_str()));
    check_status(PyList_Append(list.get(), item.get()));
  }
  return list;
}

namespace {

const char* action_name(MemoryEvent::Action action) {
  static constexpr const char* kNames[] = {
      "alloc",        "free_requested", "free_completed", "segment_alloc",
      "segment_free", "segment_map",    "segment_unmap",  "oom",
      "snapshot"};
  return kNames[static_cast<size_t>(action)];
}

PyObject* event_dict(const MemoryEvent& event) {
  PyRef dict = PyRef::check(PyDict_New());
  set_item(dict.get(), "action", PyUnicode_FromString(action_name(event.action)));
  if (event.action == MemoryEvent::Action::kOutOfMemory)
    set_int(dict.get(), "device_free", event.device_free_bytes);
  else
    set_item(dict.get(), "addr", PyLong_FromVoidPtr(const_cast<void*>(event.address)));
  set_int(dict.get(), "size", event.bytes);
  set_int(dict.get(), "stream", event.stream);
  set_int(dict.get(), "time_us", event.time_us);
  set_item(dict.get(), "frames", frames_list(event.context.get()).release());
  set_item(dict.get(), "compile_context", PyUnicode_FromString("N/A"));
  set_item(dict.get(), "user_metadata", PyUnicode_FromString(""));
  set_item(dict.get(), "segment_pool_id",
           Py_BuildValue("(LL)", static_cast<long long>(event.pool.first),
                         static_cast<long long>(event.pool.second)));
  return dict.release();
}

}  // namespace

PyRef history_list(const std::vector<MemoryEvent>& events) {
  PyRef list = PyRef::check(PyList_New(0));
  for (const MemoryEvent& event : events) {
    const PyRef item = PyRef::check(event_dict(event));
    check_status(PyList_Append(list.get(), item.get()));
  }
  return list;
}

namespace {

PyObject* memory_stats(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  PyRef dict = stats_dict(cpu_memory_stats());
  set_int(dict.get(), "live_bytes", cpu_live_bytes());
  set_int(dict.get(), "limit_bytes", cpu_memory_limit());
  return dict.release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* block_dict(const BlockInfo& block) {
  PyRef dict = PyRef::check(PyDict_New());
  set_address(dict.get(), block.address);
  set_int(dict.get(), "size", block.bytes);
  set_int(dict.get(), "requested_size", block.requested_bytes);
  const char* const state = block.state == BlockInfo::State::kFree        ? "inactive"
                            : block.state == BlockInfo::State::kAllocated ? "active_allocated"
                                                                          : "active_pending_free";
  set_item(dict.get(), "state", PyUnicode_FromString(state));
  set_item(dict.get(), "frames", frames_list(block.context.get()).release());
  return dict.release();
}

PyObject* segment_dict(const SegmentInfo& segment) {
  PyRef dict = PyRef::check(PyDict_New());
  PyRef blocks = PyRef::check(PyList_New(0));
  int64_t allocated = 0, active = 0, requested = 0;
  for (const BlockInfo& block : segment.blocks) {
    const PyRef item = PyRef::check(block_dict(block));
    check_status(PyList_Append(blocks.get(), item.get()));
    if (block.state == BlockInfo::State::kAllocated) allocated += block.bytes;
    if (block.state != BlockInfo::State::kFree) {
      active += block.bytes;
      requested += block.requested_bytes;
    }
  }
  set_address(dict.get(), segment.address);
  set_int(dict.get(), "total_size", segment.bytes);
  set_int(dict.get(), "allocated_size", allocated);
  set_int(dict.get(), "active_size", active);
  set_int(dict.get(), "requested_size", requested);
  set_int(dict.get(), "stream", segment.stream);
  set_item(dict.get(), "segment_type",
           PyUnicode_FromString(segment.small_pool ? "small" : "large"));
  set_item(dict.get(), "segment_pool_id",
           Py_BuildValue("(LL)", static_cast<long long>(segment.pool.first),
                         static_cast<long long>(segment.pool.second)));
  set_item(dict.get(), "is_expandable", PyBool_FromLong(segment.expandable));
  set_item(dict.get(), "frames", PyList_New(0));
  check_status(PyDict_SetItemString(dict.get(), "blocks", blocks.get()));
  return dict.release();
}

}  // namespace

PyRef snapshot_list(const std::vector<SegmentInfo>& segments) {
  PyRef list = PyRef::check(PyList_New(0));
  for (const SegmentInfo& segment : segments) {
    const PyRef item = PyRef::check(segment_dict(segment));
    check_status(PyList_Append(list.get(), item.get()));
  }
  return list;
}

namespace {

PyObject* memory_snapshot(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  return snapshot_list(cpu_memory_snapshot()).release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* reset_peaks(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  reset_cpu_peak_stats();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* empty_cache(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  empty_cpu_cache();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* set_limit(PyObject*, PyObject* bytes) {
  TD_PYTHON_TRY
  const long long value = PyLong_AsLongLong(bytes);
  if (value == -1 && PyErr_Occurred()) return nullptr;
  set_cpu_memory_limit(value);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// _fail_allocation(n): the n-th allocation from now on fails; returns how many were counted since
// the last call (base/fail_allocation.h).
PyObject* fail_nth_allocation(PyObject*, PyObject* n) {
  TD_PYTHON_TRY
  const long long value = PyLong_AsLongLong(n);
  if (value == -1 && PyErr_Occurred()) return nullptr;
  return PyLong_FromLongLong(fail_allocation(value));
  TD_PYTHON_CATCH(nullptr)
}

// _blocks_in_use(): how many storages, tensors, ... there are, by kind.
PyObject* count_blocks(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  static constexpr const char* kNames[detail::kNumBlockClasses] = {
      "storages", "tensors", "autograd_metas", "small_nodes", "large_nodes"};
  PyRef dict = PyRef::check(PyDict_New());
  for (int i = 0; i < detail::kNumBlockClasses; i++)
    set_int(dict.get(), kNames[i], blocks_in_use(static_cast<detail::BlockClass>(i)));
  return dict.release();
  TD_PYTHON_CATCH(nullptr)
}

// The least of what the machine, the cgroup and the process's own limit leave, in bytes.
int64_t available_memory() {
  int64_t least = CgroupMemory(own_cgroups(), "/sys/fs/cgroup").available(0);
  std::ifstream machine("/proc/meminfo");
  int64_t kilobytes;
  for (std::string name, unit; machine >> name >> kilobytes && std::getline(machine, unit);)
    if (name == "MemAvailable:") least = std::min(least, kilobytes << 10);
  rlimit limit;
  int64_t pages;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      std::ifstream("/proc/self/statm") >> pages)
    least = std::min(least, static_cast<int64_t>(limit.rlim_cur) - pages * getpagesize());
  return std::max<int64_t>(least, 0);
}
PyObject* get_available_memory(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  return PyLong_FromLongLong(available_memory());
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_available_memory", get_available_memory, METH_NOARGS, nullptr},
    {"_blocks_in_use", count_blocks, METH_NOARGS, nullptr},
    {"_cpu_memory_stats", memory_stats, METH_NOARGS, nullptr},
    {"_cpu_memory_snapshot", memory_snapshot, METH_NOARGS, nullptr},
    {"_cpu_reset_peak_memory_stats", reset_peaks, METH_NOARGS, nullptr},
    {"_cpu_empty_cache", empty_cache, METH_NOARGS, nullptr},
    {"_cpu_set_memory_limit", set_limit, METH_O, nullptr},
    {"_fail_allocation", fail_nth_allocation, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_memory(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
