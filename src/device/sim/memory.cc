#include "device/sim/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/sim/failure.h"

namespace taeda::sim {
namespace {

constexpr int64_t kAlignment = 512;
constexpr int64_t kPage = 4096;  // blocks begin on pages, which can be mapped again
// Larger blocks are filled in part only: memory that nobody touches stays with the system.
constexpr int64_t kMostFilled = int64_t{8} << 20;

int64_t whole_pages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void* map_file(int file, int64_t bytes, int protection) {
  void* const memory =
      mmap(nullptr, static_cast<size_t>(bytes), protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED)
    throw Failure(cuda::kOutOfMemory, "simulated device: the system maps no memory for it");
  return memory;
}

}  // namespace

SimMemory::SimMemory(int64_t bytes) : bytes_(bytes), file_(memfd_create("taeda-sim", MFD_CLOEXEC)) {
  if (file_ < 0 || ftruncate(file_, bytes) != 0)
    throw Failure(cuda::kOutOfMemory, "simulated device: the system has no memory file");
  base_ = reinterpret_cast<uintptr_t>(map_file(file_, bytes, PROT_NONE));
  alias_ = static_cast<char*>(map_file(file_, bytes, PROT_READ | PROT_WRITE));
  free_ = AddressRanges(base_, bytes);
}

SimMemory::SimMemory(SimMemory&& other) noexcept
    : bytes_(other.bytes_),
      used_(other.used_),
      file_(std::exchange(other.file_, -1)),
      base_(std::exchange(other.base_, 0)),
      alias_(std::exchange(other.alias_, nullptr)),
      free_(std::move(other.free_)),
      blocks_(std::move(other.blocks_)),
      virtual_(std::move(other.virtual_)) {}

SimMemory::~SimMemory() {
  if (file_ < 0) return;
  munmap(reinterpret_cast<void*>(base_), static_cast<size_t>(bytes_));
  munmap(alias_, static_cast<size_t>(bytes_));
  close(file_);
}

uintptr_t SimMemory::allocate(int64_t bytes) {
  const int64_t size = (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  const uintptr_t address = free_.take(whole_pages(size));
  if (!address) return 0;
  blocks_[address] = size;
  used_ += size;
  std::memset(alias(address), 0xff, static_cast<size_t>(std::min(size, kMostFilled)));
  return address;
}

bool SimMemory::release(uintptr_t address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return false;
  const int64_t size = block->second;
  blocks_.erase(block);
  used_ -= size;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address - base_),
            whole_pages(size));
  free_.give(address, whole_pages(size));
  return true;
}

VirtualMemory& SimMemory::addresses() {
  if (!virtual_) virtual_ = std::make_unique<VirtualMemory>();
  return *virtual_;
}

bool SimMemory::map(uintptr_t address, int64_t bytes, uintptr_t block) {
  return virtual_ && block_bytes(block) >= bytes &&
         virtual_->map(address, bytes, file_, static_cast<int64_t>(block - base_));
}

int64_t SimMemory::block_bytes(uintptr_t address) const {
  const auto block = blocks_.find(address);
  return block == blocks_.end() ? 0 : block->second;
}

bool SimMemory::holds(uintptr_t begin, int64_t bytes) const {
  if (!in_file(begin)) return virtual_ && virtual_->holds(begin, bytes);
  auto block = blocks_.upper_bound(begin);
  if (block == blocks_.begin()) return false;
  --block;
  return begin + static_cast<uintptr_t>(bytes) <=
         block->first + static_cast<uintptr_t>(block->second);
}

}  // namespace taeda::sim
