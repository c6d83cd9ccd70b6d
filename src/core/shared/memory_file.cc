#include "core/shared/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

namespace taeda::shared {

int create_memory_file(const char* name) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int file = memfd_create(name, kFlags | MFD_NOEXEC_SEAL);
  return file >= 0 || errno != EINVAL ? file : memfd_create(name, kFlags);
}

bool allocate_pages(int file, size_t offset, size_t bytes) {
  int failure;
  do {
    failure =
        fallocate(file, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (failure != 0 && errno == EINTR);
  return failure == 0;
}

}  // namespace taeda::shared
