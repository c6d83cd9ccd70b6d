#include "taeda/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "taeda/ops.h"
#include "taeda/values.h"

namespace taeda {
namespace {

TEST(Profile, RecordsOperatorsWithShapesAndTimes) {
  const Tensor x = tensor({1.0, 2.0});
  start_profile();
  EXPECT_TRUE(is_profiling());
  mul(x, x);
  add(x, 1.0);
  const Profile profile = stop_profile();
  EXPECT_FALSE(is_profiling());
  mul(x, x);
  ASSERT_EQ(profile.records.size(), 2u);
  EXPECT_EQ(profile.records[0].op->qualified_name(), "aten::mul.Tensor");
  EXPECT_EQ(profile.records[1].op->qualified_name(), "aten::add.Tensor");
  ASSERT_EQ(profile.records[0].shapes.size(), 2u);
  EXPECT_EQ(profile.records[0].shapes[0], DimVector({2}));
  EXPECT_GE(profile.records[0].end_ns, profile.records[0].start_ns);
  EXPECT_GE(profile.records[1].start_ns, profile.records[0].end_ns);
  EXPECT_EQ(profile.dropped, 0u);
}

TEST(Profile, RecordsWhatAnOperatorIsMadeOfInsideIt) {
  const Tensor x = tensor({1.0, 2.0});
  start_profile();
  op::dist(x, x, Scalar(2));
  const Profile profile = stop_profile();
  ASSERT_GE(profile.records.size(), 2u);
  EXPECT_EQ(profile.records[0].op->qualified_name(), "aten::dist");
  for (const ProfileRecord& inner : profile.records) {
    EXPECT_GE(inner.start_ns, profile.records[0].start_ns);
    EXPECT_LE(inner.end_ns, profile.records[0].end_ns);
  }
}

TEST(Profile, KeepsTheLastRecordsOfALongRun) {
  const Tensor x = tensor({1.0});
  start_profile({.shapes = false, .frames = false, .capacity = 4});
  for (int i = 0; i < 10; i++) mul(x, x);
  const Profile profile = stop_profile();
  EXPECT_EQ(profile.records.size(), 4u);
  EXPECT_EQ(profile.dropped, 6u);
  EXPECT_TRUE(profile.records[0].shapes.empty());
}

TEST(Profile, BelongsToItsThread) {
  const Tensor x = tensor({1.0});
  start_profile();
  std::thread([&] { mul(x, x); }).join();
  EXPECT_TRUE(stop_profile().records.empty());
}

TEST(Profile, EndsARecordWhereTheOperatorRaises) {
  start_profile();
  EXPECT_THROW(add(zeros({2}), zeros({3})), Error);
  const Profile profile = stop_profile();
  EXPECT_GT(profile.records.back().end_ns, 0);
}

TEST(Profile, BlocksNest) {
  const Tensor x = tensor({1.0});
  start_profile();
  const uint64_t outer = begin_profile_block("outer");
  mul(x, x);
  end_profile_block(outer);
  const Profile profile = stop_profile();
  end_profile_block(outer);  // too late: ignored
  ASSERT_EQ(profile.records.size(), 2u);
  EXPECT_EQ(profile.records[0].op, nullptr);
  EXPECT_EQ(profile.records[0].block, "outer");
  EXPECT_LE(profile.records[1].end_ns, profile.records[0].end_ns);
}

TEST(Profile, CountsTheBytesOfStorages) {
  start_profile({.shapes = false, .memory = true});
  { const Tensor x = zeros({1000}); }
  const Tensor y = zeros({2});
  const Profile profile = stop_profile();
  const auto used = [](const ProfileRecord& r) { return r.bytes_after - r.bytes_before; };
  EXPECT_EQ(used(profile.records.front()), 4000);
  EXPECT_EQ(used(profile.records.back()), 8);
  EXPECT_EQ(profile.records.back().bytes_before, profile.records.front().bytes_before);
}

TEST(Profile, TimesAreThoseOfTheSteadyClock) {
  const auto now = [] {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  };
  const int64_t before = now();
  start_profile({.shapes = false});
  zeros({2});
  const Profile profile = stop_profile();
  const int64_t after = now(), slack = 20'000;
  EXPECT_GE(profile.records.front().start_ns, before - slack);
  EXPECT_LE(profile.records.back().end_ns, after + slack);
}

TEST(Profile, StartsAndStopsOnce) {
  EXPECT_THROW(stop_profile(), Error);
  start_profile();
  EXPECT_THROW(start_profile(), Error);
  stop_profile();
}

}  // namespace
}  // namespace taeda
