// Anonymous files of memory that processes share.
#pragma once

#include <cstddef>

namespace taeda::shared {

// A memory file of no bytes that can be sealed and, where the system knows that, never executed;
// -1 and errno when there is none.
int create_memory_file(const char* name);

// Makes the pages of a range of the file exist, so that writing to them cannot fail. False and
// errno when there is no memory; whether there is enough to be had is for the caller to ask
// (available_memory.h).
bool allocate_pages(int file, size_t offset, size_t bytes);

}  // namespace taeda::shared
