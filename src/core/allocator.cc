#include "core/allocator.h"

#include <cstdlib>

#include "taeda/error.h"

namespace taeda {

void* allocate_cpu(int64_t nbytes) {
  if (nbytes == 0) return nullptr;
  const auto rounded = (static_cast<uint64_t>(nbytes) + 63) / 64 * 64;
  void* memory = nbytes > 0 ? std::aligned_alloc(64, rounded) : nullptr;
  TD_CHECK_AS(ErrorKind::kOutOfMemory, memory != nullptr, "CPU out of memory: tried to allocate {} bytes", nbytes);
  return memory;
}

void release_cpu(void* memory) { std::free(memory); }

}  // namespace taeda
