#include <gtest/gtest.h>

#include <thread>

#include "taeda/tensor.h"

namespace taeda {
namespace {

TEST(Tensor, WrappedNumberKeepsPrecision) {
  const Tensor x = 0.1;
  EXPECT_TRUE(x.impl()->wrapped_number);
  EXPECT_EQ(x.dtype(), DType::kFloat64);
  EXPECT_EQ(x.item<double>(), 0.1);
  EXPECT_EQ(Tensor(7).item<int64_t>(), 7);
  EXPECT_EQ(Tensor(true).dtype(), DType::kBool);
  EXPECT_THROW(Tensor(300).item<uint8_t>(), Error);
}

TEST(Tensor, LayoutAndContiguity) {
  Ref<TensorImpl> impl(new TensorImpl(Storage::allocate(4 * 120, DeviceType::kCPU), DType::kFloat32,
                                      DeviceType::kCPU));
  impl->set_contiguous_layout({2, 3, 4, 5});
  const Tensor x(impl);
  EXPECT_EQ(x.numel(), 120);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_FALSE(x.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data_ptr()) % 64, 0u);
  EXPECT_EQ(x.size(-1), 5);
  EXPECT_THROW(x.size(4), Error);
  impl->set_layout({2, 3, 4, 5}, {60, 1, 15, 3}, 0);
  EXPECT_TRUE(x.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_FALSE(x.is_contiguous());
}

TEST(Storage, ResizeKeepsData) {
  const Ref<Storage> storage = Storage::allocate(16, DeviceType::kCPU);
  auto* words = static_cast<int32_t*>(storage->data());
  for (int i = 0; i < 4; i++) words[i] = i * 7;
  storage->resize(4096);
  EXPECT_EQ(static_cast<int32_t*>(storage->data())[3], 21);
  storage->resize(8);
  EXPECT_EQ(static_cast<int32_t*>(storage->data())[1], 7);
  EXPECT_THROW(storage->resize(-1), Error);
}

TEST(Storage, WrapCallsTheDeleterOnce) {
  int deleted = 0;
  char memory[8];
  {
    const Ref<Storage> storage = Storage::wrap(
        memory, 8, DeviceType::kCPU, [](void* n) { ++*static_cast<int*>(n); }, &deleted);
    const Ref<Storage> second = storage;
    EXPECT_THROW(storage->resize(100), Error);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(Storage, BlocksFlowBetweenThreads) {
  // More blocks than a thread keeps, made on one thread and dropped on another that then ends.
  for (int round = 0; round < 5; round++) {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 3000; i++) tensors.emplace_back(Scalar(i));
    std::thread([&] { tensors.clear(); }).join();
  }
}

TEST(PythonTie, IncrefOnlyWhenSharedBothWays) {
  static int count = 0;
  const PythonHooks saved = python_hooks;
  python_hooks = {[](void*) { count++; }, [](void*) { count--; }};
  auto* impl =
      new TensorImpl(Storage::allocate(4, DeviceType::kCPU), DType::kFloat32, DeviceType::kCPU);
  retain(impl);  // the Python object's reference
  int python = 0;
  impl->attach_python(&python);
  {
    const Ref<TensorImpl> a(impl);
    EXPECT_EQ(count, 1);
    const Ref<TensorImpl> b(impl);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(impl->use_count(), 3u);
  }
  EXPECT_EQ(count, 0);
  impl->detach_python();
  release(impl);
  python_hooks = saved;
}

}  // namespace
}  // namespace taeda
