#include "device/sim/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "device/sim/failure.h"

namespace taeda::sim {
namespace {

constexpr int64_t kAlignment = 512;
// Larger blocks are filled in part only: memory that nobody touches stays with the system.
constexpr int64_t kMostFilled = int64_t{8} << 20;

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
  holes_[base_] = bytes;
}

SimMemory::SimMemory(SimMemory&& other) noexcept
    : bytes_(other.bytes_),
      used_(other.used_),
      file_(std::exchange(other.file_, -1)),
      base_(std::exchange(other.base_, 0)),
      alias_(std::exchange(other.alias_, nullptr)),
      holes_(std::move(other.holes_)),
      blocks_(std::move(other.blocks_)) {}

SimMemory::~SimMemory() {
  if (file_ < 0) return;
  munmap(reinterpret_cast<void*>(base_), static_cast<size_t>(bytes_));
  munmap(alias_, static_cast<size_t>(bytes_));
  close(file_);
}

uintptr_t SimMemory::allocate(int64_t bytes) {
  const int64_t size = (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  const auto hole = std::find_if(holes_.begin(), holes_.end(),
                                 [&](const auto& entry) { return entry.second >= size; });
  if (hole == holes_.end()) return 0;
  const auto [address, length] = *hole;
  holes_.erase(hole);
  if (length > size) holes_[address + static_cast<uintptr_t>(size)] = length - size;
  blocks_[address] = size;
  used_ += size;
  std::memset(alias(address), 0xff, static_cast<size_t>(std::min(size, kMostFilled)));
  return address;
}

bool SimMemory::release(uintptr_t address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return false;
  int64_t size = block->second;
  blocks_.erase(block);
  used_ -= size;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address - base_),
            size);
  auto hole = holes_.emplace(address, size).first;
  if (const auto next = std::next(hole);
      next != holes_.end() && hole->first + static_cast<uintptr_t>(hole->second) == next->first) {
    hole->second += next->second;
    holes_.erase(next);
  }
  if (hole != holes_.begin()) {
    const auto previous = std::prev(hole);
    if (previous->first + static_cast<uintptr_t>(previous->second) == hole->first) {
      previous->second += hole->second;
      holes_.erase(hole);
    }
  }
  return true;
}

int64_t SimMemory::block_bytes(uintptr_t address) const {
  const auto block = blocks_.find(address);
  return block == blocks_.end() ? 0 : block->second;
}

bool SimMemory::holds(uintptr_t begin, int64_t bytes) const {
  auto block = blocks_.upper_bound(begin);
  if (block == blocks_.begin()) return false;
  --block;
  return begin + static_cast<uintptr_t>(bytes) <=
         block->first + static_cast<uintptr_t>(block->second);
}

}  // namespace taeda::sim
