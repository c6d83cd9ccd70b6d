#include "base/fail_allocation.h"

#include <gtest/gtest.h>

#include <new>

#include "base/block_list.h"
#include "taeda/error.h"
#include "taeda/storage.h"
#include "taeda/taeda.h"

namespace taeda {
namespace {

int64_t storages() { return blocks_in_use(detail::BlockClass::kStorage); }

TEST(FailAllocation, TheNthFailsOnce) {
  // A storage is a block and, in the block or beside it, its data.
  for (const int64_t bytes : {8, 1000, 5 << 20}) {
    const int64_t before = storages();
    fail_allocation(4);
    const auto a = Storage::allocate(bytes, DeviceType::kCPU);
    EXPECT_EQ(allocations_before_failure(), 2);
    EXPECT_THROW(Storage::allocate(bytes, DeviceType::kCPU), Error);  // its data
    EXPECT_EQ(allocations_before_failure(), 0);
    EXPECT_NE(Storage::allocate(bytes, DeviceType::kCPU)->data(), nullptr);
    EXPECT_EQ(storages(), before + (kPoolBlocks ? 1 : 0));
    EXPECT_EQ(fail_allocation(1), 4);
    EXPECT_THROW(Storage::allocate(bytes, DeviceType::kCPU), std::bad_alloc);  // its block
    EXPECT_EQ(fail_allocation(0), 1);
  }
}

TEST(FailAllocation, CountsUntilItIsAskedAgain) {
  fail_allocation(1000);
  const Tensor x = ones({4}), y = x + x;
  EXPECT_EQ(fail_allocation(0), 6);  // two tensors, two storages and their data
  const Tensor z = x + y;
  EXPECT_EQ(fail_allocation(0), 0);
}

// The block that fails may be a tensor, its storage, the memory or a node of the graph.
TEST(FailAllocation, BackwardFailsAndWorksAfterwards) {
  Tensor w = ones({3, 40}).requires_grad_();
  const Tensor x = ones({5, 40});
  int64_t n = 0;
  for (bool failed = true; failed;) {
    ASSERT_LT(++n, 1000);
    fail_allocation(n);
    try {
      x.matmul(w.t()).sigmoid().sum().backward();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    } catch (const std::bad_alloc&) {
    }
    failed = fail_allocation(0) == n;
    w.set_grad(Tensor());
  }
  EXPECT_GT(n, 20);
}

}  // namespace
}  // namespace taeda
