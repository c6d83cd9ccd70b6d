// Faults planted in tensors' memory: a build with the address sanitizer must find every one, which
// it would not if blocks were kept for reuse.
#include <gtest/gtest.h>

#include "taeda/storage.h"
#include "taeda/tensor.h"

#if defined(__SANITIZE_ADDRESS__)
namespace taeda {
namespace {

volatile char read;

class SanitizedMemory : public ::testing::TestWithParam<int64_t> {
 protected:
  Ref<Storage> storage_ = Storage::allocate(GetParam(), DeviceType::kCPU);
  const volatile char* data_ = static_cast<const char*>(storage_->data());
};

TEST_P(SanitizedMemory, FindsUseAfterFree) {
  storage_ = nullptr;
  EXPECT_DEATH(read = data_[0], "heap-use-after-free");
}

TEST_P(SanitizedMemory, FindsTheFirstByteBeyond) {
  EXPECT_DEATH(read = data_[GetParam()], "heap-buffer-overflow");
}

TEST_P(SanitizedMemory, FindsTheLastByteBefore) {
  EXPECT_DEATH(read = data_[-1], "heap-buffer-overflow");
}

// In the storage, in the lists of small blocks, in the lists of threads, in the caching allocator.
INSTANTIATE_TEST_SUITE_P(Sizes, SanitizedMemory, ::testing::Values(1, 60, 100, 40000, 3 << 20));

TEST(SanitizedObjects, UseAfterFreeOfAStorage) {
  Ref<Storage> storage = Storage::allocate(8, DeviceType::kCPU);
  Storage* const freed = storage.get();
  storage = nullptr;
  EXPECT_DEATH(read = static_cast<char>(freed->nbytes()), "heap-use-after-free");
}

}  // namespace
}  // namespace taeda
#endif
