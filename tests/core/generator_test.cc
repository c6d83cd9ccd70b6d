#include "taeda/generator.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "taeda/error.h"

namespace taeda {
namespace {

TEST(Generator, IsTheMersenneTwister) {
  for (const uint32_t seed : {0u, 1u, 5489u, 4294967295u}) {
    std::mt19937 reference(seed);
    Generator generator(seed);
    for (int i = 0; i < 3000; i++) ASSERT_EQ(generator.random(), reference());
  }
  Generator high((uint64_t{1} << 40) + 7), low(7);
  EXPECT_EQ(high.random64(), low.random64());  // the lower 32 bits choose the stream
  EXPECT_EQ(high.initial_seed(), (uint64_t{1} << 40) + 7);
}

TEST(Generator, FillDrawsTheSameNumbers) {
  Generator one(3), block(3);
  std::mt19937 lengths(1);
  uint32_t words[2000];
  for (int round = 0; round < 50; round++) {
    const int64_t n = lengths() % 2000;
    block.fill(words, n);
    for (int64_t i = 0; i < n; i++) ASSERT_EQ(words[i], one.random());
    ASSERT_EQ(block.random(), one.random());
  }
}

void expect_drawn(Generator& drawn, Generator& one, int64_t n) {
  std::vector<uint32_t> buffer(static_cast<size_t>(Generator::room(n)));
  const uint32_t* words = drawn.draw(n, buffer.data());
  for (int64_t i = 0; i < n; i++) ASSERT_EQ(Generator::temper(words[i]), one.random());
}

TEST(Generator, DrawGivesTheSameWordsBeforeTempering) {
  Generator one(3), drawn(3);
  std::mt19937 lengths(1);
  for (const int64_t n : {0, 1, 623, 624, 625, 1248}) expect_drawn(drawn, one, n);
  for (int round = 0; round < 50; round++) {
    expect_drawn(drawn, one, lengths() % 5000);
    ASSERT_EQ(drawn.random(), one.random());
  }
}

TEST(Generator, DrawsFromAStateThatEndsEarly) {
  Generator one(3), drawn(3);
  one.random();
  Tensor state = one.get_state();
  static_cast<uint8_t*>(state.data_ptr())[8] = 5;  // four draws until the next twist
  static_cast<uint8_t*>(state.data_ptr())[9] = 0;
  one.set_state(state);
  drawn.set_state(state);
  expect_drawn(drawn, one, 3000);
}

TEST(Generator, StateComesBack) {
  Generator generator(11);
  for (int i = 0; i < 700; i++) generator.random();
  generator.normal();  // leaves the second of the pair
  const Tensor state = generator.get_state();
  EXPECT_EQ(state.numel(), 5056);
  EXPECT_EQ(state.dtype(), DType::kUInt8);
  const double normal = generator.normal();
  const uint32_t next = generator.random();
  Generator other(99);
  other.set_state(state);
  EXPECT_EQ(other.initial_seed(), 11u);
  EXPECT_EQ(other.normal(), normal);
  EXPECT_EQ(other.random(), next);
  generator.set_state(state);
  const Ref<Generator> clone = generator.clone();
  EXPECT_EQ(clone->normal(), normal);
  EXPECT_EQ(clone->random(), next);
  EXPECT_EQ(generator.normal(), normal);
}

TEST(Generator, DamagedStatesAreRejected) {
  Generator generator(11);
  generator.random();
  const auto with = [&](int64_t at, uint8_t value) {
    Tensor state = generator.get_state();
    state.data<uint8_t>()[at] = value;
    return state;
  };
  EXPECT_THROW(generator.set_state(with(8, 0xff)), Error);   // more draws left than there are words
  EXPECT_THROW(generator.set_state(with(12, 0)), Error);     // not seeded
  EXPECT_THROW(generator.set_state(with(16, 200)), Error);   // next + left beyond the state
  EXPECT_THROW(generator.set_state(with(20, 1)), Error);     // next = 2^32
  EXPECT_THROW(generator.set_state(with(11, 0x80)), Error);  // left negative
  EXPECT_THROW(generator.set_state(Tensor(1.0)), Error);
}

}  // namespace
}  // namespace taeda
