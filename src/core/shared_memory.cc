#include "core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "taeda/error.h"

namespace taeda {
namespace {

struct SharedFile {
  int handle = -1;
  void* data = nullptr;
  size_t bytes = 0;

  ~SharedFile() {
    if (data) munmap(data, bytes);
    if (handle >= 0) close(handle);
  }
};

void release_shared(void* context) { delete static_cast<SharedFile*>(context); }

[[noreturn]] void fail_system(const char* what, size_t bytes) {
  fail(ErrorKind::kRuntime, "share_memory: cannot {} {} bytes: {}", what, bytes,
       std::strerror(errno));
}

void map(SharedFile& file) {
  void* data = mmap(nullptr, file.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.handle, 0);
  if (data == MAP_FAILED) fail_system("map", file.bytes);
  file.data = data;
}

// A mapped file that another process makes smaller would end this one with SIGBUS.
bool seal_size(int handle) {
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  if (fcntl(handle, F_ADD_SEALS, kSize) == 0) return true;
  const int seals = fcntl(handle, F_GET_SEALS);  // somebody else may have sealed it, for good
  return seals >= 0 && (seals & kSize) == kSize;
}

// A mapping cannot be empty.
size_t mapped_bytes(int64_t nbytes) { return nbytes > 0 ? static_cast<size_t>(nbytes) : 1; }

}  // namespace

void share_memory(Storage& storage) {
  if (shared_handle(storage) >= 0) return;
  TD_CHECK_IMPLEMENTED(storage.device().is_cpu(), "share_memory: a storage on {}",
                       storage.device());
  auto file = std::make_unique<SharedFile>();
  file->bytes = mapped_bytes(storage.nbytes());
  file->handle = memfd_create("taeda", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file->handle < 0 || ftruncate(file->handle, static_cast<off_t>(file->bytes)) != 0 ||
      !seal_size(file->handle))
    fail_system("get", file->bytes);
  map(*file);
  storage.replace(file->data, release_shared, file.get());
  file.release();
}

int shared_handle(const Storage& storage) {
  const auto* file = static_cast<const SharedFile*>(storage.context_of(release_shared));
  return file ? file->handle : -1;
}

Ref<Storage> open_shared(int handle, int64_t nbytes) {
  TD_CHECK(nbytes >= 0, "share_memory: expected a size of at least 0 bytes, got {}", nbytes);
  auto file = std::make_unique<SharedFile>();
  file->bytes = mapped_bytes(nbytes);
  file->handle = fcntl(handle, F_DUPFD_CLOEXEC, 0);
  struct stat status;
  if (file->handle < 0) fail_system("open", file->bytes);
  TD_CHECK(seal_size(file->handle),
           "share_memory: expected a memory file whose size is sealed, got one that can shrink");
  if (fstat(file->handle, &status) != 0) fail_system("open", file->bytes);
  TD_CHECK(static_cast<size_t>(status.st_size) >= file->bytes,
           "share_memory: the file has {} bytes, expected {}", static_cast<int64_t>(status.st_size),
           nbytes);
  map(*file);
  Ref<Storage> storage =
      Storage::wrap(file->data, nbytes, DeviceType::kCPU, release_shared, file.get());
  file.release();
  return storage;
}

}  // namespace taeda
