// CPU memory for storages: 64-byte aligned, uninitialised.
#pragma once

#include <cstdint>

namespace taeda {

// OutOfMemoryError when the system has none. Zero bytes give null.
void* allocate_cpu(int64_t nbytes);
void release_cpu(void* memory);

}  // namespace taeda
