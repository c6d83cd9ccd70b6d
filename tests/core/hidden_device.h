// A CUDA device for tests whose memory the host may not touch: a program that does ends by SIGSEGV.
//
// The same pages are mapped twice; tensors get addresses of the mapping without access, copies use
// the other. Nothing runs there, so operators are on fallback.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "core/device_memory.h"

namespace taeda {

class HiddenDevice : public ::testing::Test {
 public:
  static constexpr Device kDevice{DeviceType::kCUDA, 0};

 protected:
  void SetUp() override {
    if (!hidden) map();
    used = 0;
    RegisterDeviceMemory(DeviceType::kCUDA, kMemory);
  }
  void TearDown() override { RegisterDeviceMemory(DeviceType::kCUDA, before_); }

 private:
  static constexpr int64_t kBytes = 1 << 20;
  static inline char *hidden = nullptr, *visible = nullptr;
  static inline int64_t used = 0;

  static void map() {
    const int file = memfd_create("hidden", 0);
    ASSERT_EQ(ftruncate(file, kBytes), 0);
    hidden = static_cast<char*>(mmap(nullptr, kBytes, PROT_NONE, MAP_SHARED, file, 0));
    visible =
        static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
  }
  static void* allocate(int64_t nbytes, Device) {
    void* const memory = nbytes ? hidden + used : nullptr;
    used += (nbytes + 63) / 64 * 64;
    EXPECT_LE(used, kBytes);
    return memory;
  }
  static char* reachable(const void* memory) {
    char* const address = static_cast<char*>(const_cast<void*>(memory));
    return address >= hidden && address < hidden + kBytes ? visible + (address - hidden) : address;
  }
  static void copy(void* to, Device, const void* from, Device, int64_t nbytes, bool) {
    std::memmove(reachable(to), reachable(from), static_cast<size_t>(nbytes));
  }

  static constexpr DeviceMemory kMemory{
      .resolve = [](Device) { return kDevice; },
      .allocate = allocate,
      .release = [](void*, int64_t, Device) {},
      .copy = copy,
  };
  const DeviceMemory& before_ = device_memory(DeviceType::kCUDA);
};

}  // namespace taeda
