#include "core/shared/write_barrier.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace taeda::shared {
namespace {

#ifdef UFFDIO_WRITEPROTECT

int open_userfaultfd() {
  const long all = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  // Who may not stop the kernel's own writes, such as those of read(2), may stop the program's: the
  // kernel's fail.
  return static_cast<int>(
      all >= 0 ? all : syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
}

bool protect(int descriptor, void* begin, size_t bytes) {
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (ioctl(descriptor, UFFDIO_API, &api) != 0) return false;
  const uffdio_range range{reinterpret_cast<uintptr_t>(begin), bytes};
  uffdio_register watched{};
  watched.range = range;
  watched.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(descriptor, UFFDIO_REGISTER, &watched) != 0) return false;
  uffdio_writeprotect protection{};
  protection.range = range;
  protection.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  return ioctl(descriptor, UFFDIO_WRITEPROTECT, &protection) == 0;
}

#else

int open_userfaultfd() { return -1; }
bool protect(int, void*, size_t) { return false; }

#endif

}  // namespace

// What does not exist cannot be protected.
WriteBarrier::WriteBarrier(void* begin, size_t bytes) {
  if (madvise(begin, bytes, MADV_POPULATE_READ) != 0) return;
  descriptor_ = open_userfaultfd();
  if (descriptor_ < 0 || protect(descriptor_, begin, bytes)) return;
  close(descriptor_);
  descriptor_ = -1;
}

// Which wakes those that wait.
WriteBarrier::~WriteBarrier() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace taeda::shared
