#include "core/layout.h"

#include <gtest/gtest.h>

namespace taeda {
namespace {

TEST(Layout, NumelIsChecked) {
  EXPECT_EQ(checked_numel({2, 3, 4}), 24);
  EXPECT_EQ(checked_numel({}), 1);
  EXPECT_EQ(checked_numel({int64_t{1} << 62, 8, 0}), 0);
  EXPECT_THROW(checked_numel({int64_t{1} << 62, 2}), Error);
  EXPECT_THROW(checked_numel({2, -1}), Error);
}

TEST(Layout, Strides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (DimVector{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (DimVector{4, 4, 1}));
  EXPECT_EQ(channels_last_strides({2, 3, 4, 5}), (DimVector{60, 1, 15, 3}));
  EXPECT_EQ(preserved_strides({2, 3, 4, 5}, {60, 1, 15, 3}), (DimVector{60, 1, 15, 3}));
  // torch.empty_like of torch.empty(4, 6).t()[::2]: strides (1, 3)
  EXPECT_EQ(preserved_strides({3, 4}, {2, 6}), (DimVector{1, 3}));
}

TEST(Layout, Broadcast) {
  EXPECT_EQ(broadcast_shapes({2, 1, 4}, {3, 1}), (DimVector{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({1}, {0}), (DimVector{0}));
  EXPECT_THROW(broadcast_shapes({2, 3}, {4}), Error);
}

TEST(Layout, StorageBytes) {
  EXPECT_EQ(storage_bytes_needed({2, 3}, {3, 1}, 0, DType::kFloat32), 24);
  EXPECT_EQ(storage_bytes_needed({2, 3}, {0, 1}, 5, DType::kFloat64), 64);
  EXPECT_EQ(storage_bytes_needed({0, 3}, {int64_t{1} << 62, 1}, 5, DType::kFloat64), 0);
  EXPECT_THROW(storage_bytes_needed({2, 3}, {int64_t{1} << 62, 1}, 0, DType::kFloat64), Error);
  EXPECT_THROW(storage_bytes_needed({2}, {-1}, 4, DType::kFloat64), Error);
}

TEST(Layout, InternalOverlap) {
  EXPECT_EQ(internal_overlap({2, 3}, {3, 1}), Overlap::kNo);
  EXPECT_EQ(internal_overlap({2, 3}, {1, 2}), Overlap::kNo);
  EXPECT_EQ(internal_overlap({2, 3}, {0, 1}), Overlap::kYes);
  EXPECT_EQ(internal_overlap({3, 3}, {1, 1}), Overlap::kUnknown);
  EXPECT_EQ(internal_overlap({1, 3}, {0, 1}), Overlap::kNo);
}

Tensor view_of(const Ref<Storage>& storage, IntSpan sizes, IntSpan strides, int64_t offset) {
  Ref<TensorImpl> impl(new TensorImpl(storage, DType::kFloat32, DeviceType::kCPU));
  impl->set_layout(sizes, strides, offset);
  return Tensor(impl);
}

TEST(Layout, MemoryOverlap) {
  const Ref<Storage> storage = Storage::allocate(400, DeviceType::kCPU);
  const Tensor all = view_of(storage, {10}, {1}, 0);
  EXPECT_EQ(memory_overlap(all, view_of(storage, {10}, {1}, 0)), MemoryOverlap::kFull);
  EXPECT_EQ(memory_overlap(all, view_of(storage, {10}, {1}, 10)), MemoryOverlap::kNo);
  EXPECT_EQ(memory_overlap(all, view_of(storage, {10}, {1}, 1)), MemoryOverlap::kPartial);
  EXPECT_EQ(memory_overlap(view_of(storage, {5}, {2}, 0), view_of(storage, {5}, {2}, 1)),
            MemoryOverlap::kNo);
  EXPECT_EQ(
      memory_overlap(view_of(storage, {5, 4}, {5, 1}, 0), view_of(storage, {5, 4}, {5, 1}, 1)),
      MemoryOverlap::kUnknown);
}

TEST(Layout, WrapDim) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(0, 0), 0);
  try {
    wrap_dim(3, 3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIndex);
    EXPECT_STREQ(error.what(),
                 "Dimension out of range (expected to be in range of [-3, 2], but got 3)\n"
                 "Fix: give one from 0 to 2, or count from the end, where -1 is the last one");
  }
}

}  // namespace
}  // namespace taeda
