#include "core/device_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "taeda/error.h"
#include "taeda/storage.h"

namespace taeda {
namespace {

// A device whose memory is the host's, and counted.
std::map<void*, int64_t> blocks;
int copies = 0;
constexpr DeviceMemory kCounted{
    .resolve = [](Device device) { return Device(device.type, 0); },
    .allocate = [](int64_t nbytes, Device) -> void* {
      void* memory = nbytes ? std::malloc(static_cast<size_t>(nbytes)) : nullptr;
      if (memory) blocks[memory] = nbytes;
      return memory;
    },
    .release =
        [](void* memory, int64_t nbytes, Device) {
          EXPECT_EQ(blocks.at(memory), nbytes);
          blocks.erase(memory);
          std::free(memory);
        },
    .copy =
        [](void* to, Device, const void* from, Device, int64_t nbytes, bool) {
          copies++;
          std::memcpy(to, from, static_cast<size_t>(nbytes));
        },
};

class DeviceMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RegisterDeviceMemory(DeviceType::kCUDA, kCounted);
    blocks.clear();
    copies = 0;
  }
  void TearDown() override {
    EXPECT_TRUE(blocks.empty());
    RegisterDeviceMemory(DeviceType::kCUDA, before_);
  }
  const DeviceMemory& before_ = device_memory(DeviceType::kCUDA);
  const Device cuda_{DeviceType::kCUDA, 0};
};

TEST_F(DeviceMemoryTest, SmallStoragesOfADeviceLieInItsMemory) {
  const Ref<Storage> storage = Storage::allocate(8, cuda_);
  EXPECT_TRUE(blocks.contains(storage->data()));
}

TEST_F(DeviceMemoryTest, EmptyStoragesHaveNone) {
  EXPECT_EQ(Storage::allocate(0, cuda_)->data(), nullptr);
}

TEST_F(DeviceMemoryTest, ResizeCopiesOnTheDevice) {
  const Ref<Storage> storage = Storage::allocate(4, cuda_);
  std::memcpy(storage->data(), "abc", 4);
  storage->resize(1000);
  EXPECT_EQ(blocks.at(storage->data()), 1000);
  EXPECT_EQ(copies, 1);
  EXPECT_STREQ(static_cast<const char*>(storage->data()), "abc");
}

TEST_F(DeviceMemoryTest, MemoryOfADeviceIsNotReplacedByTheHosts) {
  const Ref<Storage> storage = Storage::allocate(4, cuda_);
  char host[4];
  EXPECT_THROW(storage->replace(host, nullptr, nullptr), Error);
}

TEST_F(DeviceMemoryTest, TheDeviceCopiesToAndFromTheHost) {
  const Ref<Storage> storage = Storage::allocate(4, cuda_);
  char host[4] = "xyz", back[4];
  copy_memory(storage->data(), cuda_, host, DeviceType::kCPU, 4);
  copy_memory(back, DeviceType::kCPU, storage->data(), cuda_, 4);
  EXPECT_EQ(copies, 2);
  EXPECT_STREQ(back, "xyz");
}

}  // namespace
}  // namespace taeda
