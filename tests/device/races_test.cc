#include "device/sim/races.h"

#include <gtest/gtest.h>

#include <random>

namespace taeda::sim {
namespace {

OperationRef operation(size_t stream, uint64_t tick) {
  return std::make_shared<Operation>(Operation{"op", "", stream, tick});
}

TEST(RaceDetector, OverlapByOneByte) {
  RaceDetector races;
  Clock first, second;
  first.advance(1);
  second.advance(2);
  EXPECT_EQ(races.touch(100, 200, true, operation(1, 1), first), "");
  EXPECT_EQ(races.touch(200, 300, true, operation(2, 1), second), "");
  EXPECT_NE(races.touch(199, 200, false, operation(2, 1), second), "");
  races.forget(150, 200);
  EXPECT_EQ(races.touch(199, 200, false, operation(2, 1), second), "");
  EXPECT_NE(races.touch(149, 150, false, operation(2, 1), second), "");
}

// Against a list of all accesses that compares each pair byte by byte.
TEST(RaceDetector, AgreesWithAllPairs) {
  struct Seen {
    uintptr_t begin, end;
    bool writes;
    size_t stream;
    uint64_t tick;
  };
  std::mt19937 random(3);
  for (int round = 0; round < 200; round++) {
    RaceDetector races;
    std::vector<Seen> all;
    Clock clocks[4];
    for (int step = 0; step < 60; step++) {
      const size_t stream = 1 + random() % 3;
      if (random() % 3 == 0) clocks[stream].join(clocks[1 + random() % 3]);
      const uint64_t tick = clocks[stream].advance(stream);
      const uintptr_t begin = random() % 40, end = begin + 1 + random() % 10;
      const bool writes = random() % 2;
      bool expected = false;
      for (const Seen& s : all) {
        expected |= s.stream != stream && s.tick > clocks[stream][s.stream] && s.begin < end &&
                    begin < s.end && (writes || s.writes);
      }
      const bool found =
          !races.touch(begin, end, writes, operation(stream, tick), clocks[stream]).empty();
      ASSERT_EQ(found, expected) << "round " << round << ", step " << step;
      if (!found) all.push_back({begin, end, writes, stream, tick});
    }
  }
}

}  // namespace
}  // namespace taeda::sim
