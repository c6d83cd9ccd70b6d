#include "taeda/storage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/block_list.h"
#include "base/fail_allocation.h"
#include "core/device_memory.h"
#include "core/storage_bytes.h"
#include "taeda/error.h"

namespace taeda {

constinit thread_local int64_t live_storage_bytes = 0;

namespace {

// A storage and, in its upper half, the data of small ones. Sanitizers watch blocks, not halves.
constexpr size_t kBlockBytes = kStorageBlockBytes;
constexpr int64_t kInlineBytes = kPoolBlocks ? 64 : 0;
static_assert(sizeof(Storage) <= kBlockBytes - kInlineBytes);
using Blocks = BlockList<detail::BlockClass::kStorage, kBlockBytes>;

void* inline_data(Storage* storage) {
  return reinterpret_cast<char*>(storage) + (kBlockBytes - kInlineBytes);
}

bool is_inline(Device device, int64_t nbytes) { return device.is_cpu() && nbytes <= kInlineBytes; }

[[gnu::noinline]] void add_bytes(Device device, int64_t nbytes) {
  if (device.is_cpu()) live_storage_bytes += nbytes;
}

void count_bytes(Device device, int64_t nbytes) {
  if (storage_bytes_counters.load(std::memory_order_relaxed)) [[unlikely]]
    add_bytes(device, nbytes);
}

[[gnu::noinline]] void* allocate_on_device(int64_t nbytes, Device device) {
  return device_memory(device.type).allocate(nbytes, device);
}
[[noreturn, gnu::cold, gnu::noinline]] void fail_injected(int64_t nbytes) {
  fail(ErrorKind::kOutOfMemory, "CPU out of memory. Tried to allocate {} bytes (injected failure)",
       nbytes);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_size(std::string_view what, int64_t nbytes) {
  fail(ErrorKind::kRuntime, "{}: expected a size of at least 0 bytes, got {}", what, nbytes);
}

inline void* allocate_data(Storage* storage, int64_t nbytes, Device device) {
  if (!is_inline(device, nbytes)) [[unlikely]]
    return allocate_on_device(nbytes, device);
  if (allocation_fails()) [[unlikely]]
    fail_injected(nbytes);
  return inline_data(storage);
}

// Gives the whole pages among n bytes back to the system; they read as 0 from then on.
void drop_pages(char* begin, int64_t n) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  const auto to = (reinterpret_cast<uintptr_t>(begin) + static_cast<uintptr_t>(n)) / page * page;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace

void* Storage::operator new(size_t) { return Blocks::take(); }
void Storage::operator delete(void* object) { Blocks::give(object); }

inline Ref<Storage> Storage::make(Device device) {
  auto* const storage = new Storage;
  retain_new(storage);
  storage->device_ = device;
  return Ref<Storage>::adopt(storage);
}

Ref<Storage> Storage::allocate(int64_t nbytes, Device device) {
  if (nbytes < 0) [[unlikely]]
    fail_size("Storage", nbytes);
  Ref<Storage> storage = make(device);
  storage->data_ = allocate_data(storage.get(), nbytes, device);
  storage->owned_ = true;
  count_bytes(device, nbytes);
  storage->nbytes_ = storage->allocated_ = nbytes;
  return storage;
}

Ref<Storage> Storage::wrap(void* data, int64_t nbytes, Device device, Deleter deleter,
                           void* context) {
  Ref<Storage> storage = make(device);
  storage->data_ = data;
  storage->nbytes_ = nbytes;
  storage->deleter_ = deleter;
  storage->context_ = context;
  return storage;
}

Storage::~Storage() {
  // Nothing is to be done for memory inside of the block, unless somebody counts its bytes. In
  // blocks without any, the address is that of whatever follows.
  if (kInlineBytes == 0 || data_ != inline_data(this) ||
      storage_bytes_counters.load(std::memory_order_relaxed))
    free_data();
}

void Storage::last_release() const { delete this; }

[[gnu::noinline]] void Storage::free_data() {
  if (deleter_) return deleter_(context_);
  if (!owned_ || !data_) return;
  count_bytes(device_, -allocated_);
  if (!is_inline(device_, allocated_))
    device_memory(device_.type).release(data_, allocated_, device_);
}

void Storage::resize(int64_t nbytes) {
  if (nbytes < 0) fail_size("Storage.resize_", nbytes);
  TD_CHECK(resizable(), "Trying to resize storage that is not resizable");
  if (nbytes == 0 && owned_ && data_ && !device_.is_cpu()) {  // so programs free a device's memory
    free_data();
    data_ = nullptr;
    allocated_ = 0;
  } else if (owned_ && nbytes <= allocated_) {
    if (device_.is_cpu() && nbytes < nbytes_)
      drop_pages(static_cast<char*>(data_) + nbytes, nbytes_ - nbytes);
  } else {
    const int64_t size = std::max(nbytes, nbytes_);
    void* fresh = allocate_data(this, size, device_);
    count_bytes(device_, size);
    if (fresh == data_) {
      count_bytes(device_, -allocated_);
    } else {
      copy_memory(fresh, device_, data_, device_, nbytes_);
      free_data();
      data_ = fresh;
    }
    deleter_ = nullptr;
    owned_ = true;
    allocated_ = size;
  }
  nbytes_ = nbytes;
}

void Storage::replace(void* data, Deleter deleter, void* context) {
  TD_CHECK(pins_ == 0 && resizable_, "Storage: memory that others know cannot be moved");
  TD_CHECK(device_.is_cpu(), "Storage: memory of {} cannot be moved to the host's", device_);
  copy_memory(data, device_, data_, device_, nbytes_);
  free_data();
  data_ = data;
  deleter_ = deleter;
  context_ = context;
  owned_ = false;
}

}  // namespace taeda
