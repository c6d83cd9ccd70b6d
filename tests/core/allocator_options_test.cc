#include "core/allocator_options.h"

#include <gtest/gtest.h>

#include "taeda/error.h"

namespace taeda {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::string refusal(const char* text) {
  try {
    parse_allocator_options(text);
    return {};
  } catch (const Error& error) {
    return error.kind() == ErrorKind::kValue ? error.what() : "of another kind";
  }
}

TEST(AllocatorOptions, ListsOfKeysAndValues) {
  const AllocatorOptions o = parse_allocator_options(
      " max_split_size_mb : 40,garbage_collection_threshold:0.6,,expandable_segments:True,"
      "large_segment_size_mb:32,per_process_memory_fraction:0.5,pinned_use_cuda_host_register:True,"
      "pinned_num_register_threads:8,pinned_reserve_segment_size_mb:16,backend:native,");
  EXPECT_EQ(o.max_split_bytes, 40 * kMiB);
  EXPECT_EQ(o.garbage_collection_threshold, 0.6);
  EXPECT_TRUE(o.expandable_segments);
  EXPECT_EQ(o.large_segment_bytes, 32 * kMiB);
  EXPECT_EQ(o.memory_fraction, 0.5);
  EXPECT_TRUE(o.pinned_by_registering);
  EXPECT_EQ(o.pinned_register_threads, 8);
  EXPECT_EQ(o.pinned_reserve_bytes, 16 * kMiB);
  EXPECT_EQ(parse_allocator_options("").max_split_bytes, INT64_MAX);
}

TEST(AllocatorOptions, WhatPyTorchRefusesIsRefusedInItsWords) {
  EXPECT_EQ(refusal("foo:1"), "Unrecognized key 'foo' in Accelerator allocator config.");
  EXPECT_EQ(refusal("max_split_size_mb:10"),
            "CachingAllocator option max_split_size_mb too small, must be >= 20");
  EXPECT_EQ(refusal("garbage_collection_threshold:1.5"),
            "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
  EXPECT_EQ(refusal("roundup_power2_divisions:3"),
            "For roundups, the divisions has to be power of 2 ");
  EXPECT_EQ(refusal("roundup_power2_divisions:[300:1]"),
            "For roundups, the intervals have to be power of 2 ");
  EXPECT_EQ(refusal("expandable_segments:true"),
            "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'");
  EXPECT_EQ(refusal("large_segment_size_mb:10"),
            "CachingAllocator option large_segment_size_mb must be > 10 MB");
}

TEST(AllocatorOptions, WhatIsCutShortOrNoNumberIsRefused) {
  for (const char* text :
       {"max_split_size_mb", "max_split_size_mb:", "max_split_size_mb:x", "max_split_size_mb:-1",
        "max_split_size_mb:40x", "roundup_power2_divisions:[256:1", "roundup_power2_divisions:[1]",
        "max_split_size_mb:40 foo:3", "max_split_size_mb=40", "backend:other", ":", "[",
        "pinned_num_register_threads:3", "expandable_segments:True:False"})
    EXPECT_NE(refusal(text), "") << text;
}

TEST(AllocatorOptions, RequestsAreRoundedUpBetweenPowersOfTwo) {
  const AllocatorOptions four = parse_allocator_options("roundup_power2_divisions:4");
  EXPECT_EQ(four.rounded(1200 * 1024, 512), 1280 * 1024);  // PyTorch's example: 1024, 1280, 1536
  EXPECT_EQ(four.rounded(1024 * 1024, 512), 1024 * 1024);
  EXPECT_EQ(four.rounded(1025 * 1024, 512), 1280 * 1024);
  EXPECT_EQ(four.rounded(1900, 512), 2048);
  EXPECT_EQ(four.rounded(1, 512), 512);
  const AllocatorOptions by_size =
      parse_allocator_options("roundup_power2_divisions:[2:1,4:2,8:4,>:8]");
  EXPECT_EQ(by_size.rounded(3 * kMiB + 1, 512), 3 * kMiB + 512);
  EXPECT_EQ(by_size.rounded(5 * kMiB, 512), 6 * kMiB);
  EXPECT_EQ(by_size.rounded(9 * kMiB, 512), 10 * kMiB);
  EXPECT_EQ(by_size.rounded(33 * kMiB, 512), 36 * kMiB);
}

}  // namespace
}  // namespace taeda
