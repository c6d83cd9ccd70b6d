#include "python/arenas.h"

#include <algorithm>
#include <mutex>

#include "base/fork.h"
#include "python/common.h"

namespace taeda::python {
namespace {

using data::PageRange;

// Never destroyed: Python gets and frees arenas until the very end.
struct Arenas {
  Arenas() { protect_over_fork(mutex); }
  std::mutex mutex;  // interpreters with locks of their own share the allocator
  std::vector<PageRange> all;
  PyObjectArenaAllocator system;
};
Arenas* known = nullptr;

PageRange range_of(void* arena, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(arena);
  return {begin, begin + bytes};
}

void* allocate(void* context, size_t bytes) {
  void* const arena = known->system.alloc(context, bytes);
  if (!arena) return nullptr;
  const std::lock_guard<std::mutex> lock(known->mutex);
  try {
    known->all.push_back(range_of(arena, bytes));
  } catch (const std::bad_alloc&) {  // one that is not known is not shared
  }
  return arena;
}

void release(void* context, void* arena, size_t bytes) {
  {
    const std::lock_guard<std::mutex> lock(known->mutex);
    const uintptr_t begin = range_of(arena, bytes).begin;
    std::erase_if(known->all, [begin](const PageRange& range) { return range.begin == begin; });
  }
  known->system.free(context, arena, bytes);
}

}  // namespace

void watch_arenas() {
  if (known) return;
  known = new Arenas;
  PyObject_GetArenaAllocator(&known->system);
  PyObjectArenaAllocator watching = {known->system.ctx, allocate, release};
  PyObject_SetArenaAllocator(&watching);
}

std::vector<PageRange> arenas() {
  PyObjectArenaAllocator current;
  PyObject_GetArenaAllocator(&current);
  if (!known || current.alloc != allocate || current.free != release) return {};
  const std::lock_guard<std::mutex> lock(known->mutex);
  return known->all;
}

}  // namespace taeda::python
