#include "device/sim/virtual_memory.h"

#include <sys/mman.h>

#include <iterator>
#include <vector>

#include "device/sim/failure.h"

namespace taeda::sim {
namespace {

// Addresses without memory.
void* map_nothing(void* at, int64_t bytes) {
  void* const memory =
      mmap(at, static_cast<size_t>(bytes), PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
  if (memory == MAP_FAILED)
    throw Failure(cuda::kOutOfMemory, "simulated device: the system has no addresses for it");
  return memory;
}

uintptr_t after(uintptr_t address, int64_t bytes) {
  return address + static_cast<uintptr_t>(bytes);
}

}  // namespace

VirtualMemory::VirtualMemory()
    : base_(reinterpret_cast<uintptr_t>(map_nothing(nullptr, kBytes))),
      alias_(static_cast<char*>(map_nothing(nullptr, kBytes))),
      free_(base_, kBytes) {}

VirtualMemory::~VirtualMemory() {
  munmap(reinterpret_cast<void*>(base_), static_cast<size_t>(kBytes));
  munmap(alias_, static_cast<size_t>(kBytes));
}

uintptr_t VirtualMemory::reserve(int64_t bytes) {
  const uintptr_t address = free_.take(bytes);
  if (address) reserved_[address] = bytes;
  return address;
}

bool VirtualMemory::unreserve(uintptr_t address, int64_t bytes) {
  const auto range = reserved_.find(address);
  if (range == reserved_.end() || range->second != bytes) return false;
  const auto inside = mappings_.lower_bound(address);
  if (inside != mappings_.end() && inside->first < after(address, bytes)) return false;
  reserved_.erase(range);
  free_.give(address, bytes);
  return true;
}

bool VirtualMemory::map(uintptr_t address, int64_t bytes, int file, int64_t offset) {
  auto range = reserved_.upper_bound(address);
  if (range == reserved_.begin()) return false;
  --range;
  if (after(address, bytes) > after(range->first, range->second)) return false;
  const auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < after(address, bytes)) return false;
  if (next != mappings_.begin()) {
    const auto previous = std::prev(next);
    if (after(previous->first, previous->second.bytes) > address) return false;
  }
  void* const memory = mmap(alias(address), static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, offset);
  if (memory == MAP_FAILED)
    throw Failure(cuda::kOutOfMemory, "simulated device: the system maps no memory for it");
  mappings_[address] = {bytes, false};
  return true;
}

template <class F>
bool VirtualMemory::for_each(uintptr_t address, int64_t bytes, F use) {
  std::vector<Mappings::iterator> inside;
  const uintptr_t end = after(address, bytes);
  for (uintptr_t at = address; at < end;) {
    const auto mapping = mappings_.find(at);
    if (mapping == mappings_.end()) return false;
    at = after(at, mapping->second.bytes);
    if (at > end) return false;
    inside.push_back(mapping);
  }
  for (const auto mapping : inside) use(mapping);
  return true;
}

bool VirtualMemory::allow(uintptr_t address, int64_t bytes) {
  return for_each(address, bytes, [](auto mapping) { mapping->second.allowed = true; });
}

bool VirtualMemory::unmap(uintptr_t address, int64_t bytes) {
  return for_each(address, bytes, [this](auto mapping) {
    map_nothing(alias(mapping->first), mapping->second.bytes);
    mappings_.erase(mapping);
  });
}

bool VirtualMemory::holds(uintptr_t begin, int64_t bytes) const {
  auto mapping = mappings_.upper_bound(begin);
  if (mapping == mappings_.begin()) return false;
  --mapping;
  const uintptr_t end = after(begin, bytes);
  for (uintptr_t at = begin; at < end; ++mapping) {
    if (mapping == mappings_.end() || mapping->first > at || !mapping->second.allowed) return false;
    const uintptr_t next = after(mapping->first, mapping->second.bytes);
    if (next <= at) return false;
    at = next;
  }
  return true;
}

}  // namespace taeda::sim
