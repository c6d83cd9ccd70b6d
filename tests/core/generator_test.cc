#include "taeda/generator.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "taeda/error.h"
#include "taeda/tensor.h"

namespace taeda {
namespace {

// A process begins with a seed of its own; no test of this program should differ in each run.
class Seeding : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { manual_seed(0); }
};
[[maybe_unused]] const bool seeding = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Seeding);
  return true;
}();

TEST(Generator, DefaultHasASeedOfItsOwn) {
  EXPECT_EQ(Mt19937().initial_seed(), Generator::kDefaultSeed);
  EXPECT_NE(default_generator().seed(), default_generator().seed());
}

TEST(Generator, IsTheMersenneTwister) {
  for (const uint32_t seed : {0u, 1u, 5489u, 4294967295u}) {
    std::mt19937 reference(seed);
    Mt19937 generator(seed);
    for (int i = 0; i < 3000; i++) ASSERT_EQ(generator.random(), reference());
  }
  Mt19937 high((uint64_t{1} << 40) + 7), low(7);
  EXPECT_EQ(high.random64(), low.random64());  // the lower 32 bits choose the stream
  EXPECT_EQ(high.initial_seed(), (uint64_t{1} << 40) + 7);
}

TEST(Generator, FillDrawsTheSameNumbers) {
  Mt19937 one(3), block(3);
  std::mt19937 lengths(1);
  uint32_t words[2000];
  for (int round = 0; round < 50; round++) {
    const int64_t n = lengths() % 2000;
    block.fill(words, n);
    for (int64_t i = 0; i < n; i++) ASSERT_EQ(words[i], one.random());
    ASSERT_EQ(block.random(), one.random());
  }
}

void expect_drawn(Mt19937& drawn, Mt19937& one, int64_t n) {
  std::vector<uint32_t> buffer(static_cast<size_t>(Mt19937::buffer_words(n)));
  const uint32_t* words = drawn.draw(n, buffer.data());
  for (int64_t i = 0; i < n; i++) ASSERT_EQ(Mt19937::temper(words[i]), one.random());
}

TEST(Generator, DrawGivesTheSameWordsBeforeTempering) {
  Mt19937 one(3), drawn(3);
  std::mt19937 lengths(1);
  for (const int64_t n : {0, 1, 623, 624, 625, 1248}) expect_drawn(drawn, one, n);
  for (int round = 0; round < 50; round++) {
    expect_drawn(drawn, one, lengths() % 5000);
    ASSERT_EQ(drawn.random(), one.random());
  }
}

TEST(Generator, PeekGivesWordsThatSkipDraws) {
  Mt19937 one(3), peeked(3);
  std::mt19937 numbers(1);
  uint32_t words[Mt19937::kWords];
  for (int round = 0; round < 200; round++) {
    const int64_t most = 1 + numbers() % Mt19937::kWords, n = peeked.peek(words, most);
    ASSERT_TRUE(n >= 1 && n <= most);
    const int64_t drawn = 1 + numbers() % n;
    peeked.skip(drawn);
    for (int64_t i = 0; i < drawn; i++) ASSERT_EQ(words[i], one.random());
    ASSERT_EQ(peeked.random(), one.random());
  }
  EXPECT_EQ(one.random64(), peeked.random64());
}

TEST(Generator, DrawsFromAStateThatEndsEarly) {
  Mt19937 one(3), drawn(3);
  one.random();
  Tensor state = one.get_state();
  static_cast<uint8_t*>(state.data_ptr())[8] = 5;  // four draws until the next twist
  static_cast<uint8_t*>(state.data_ptr())[9] = 0;
  one.set_state(state);
  drawn.set_state(state);
  expect_drawn(drawn, one, 3000);
}

TEST(Generator, StateComesBack) {
  Mt19937 generator(11);
  for (int i = 0; i < 700; i++) generator.random();
  generator.normal();  // leaves the second of the pair
  const Tensor state = generator.get_state();
  EXPECT_EQ(state.numel(), 5056);
  EXPECT_EQ(state.dtype(), DType::kUInt8);
  const double normal = generator.normal();
  const uint32_t next = generator.random();
  Mt19937 other(99);
  other.set_state(state);
  EXPECT_EQ(other.initial_seed(), 11u);
  EXPECT_EQ(other.normal(), normal);
  EXPECT_EQ(other.random(), next);
  generator.set_state(state);
  const Ref<Generator> clone = generator.clone();
  EXPECT_EQ(clone->twister().normal(), normal);
  EXPECT_EQ(clone->twister().random(), next);
  EXPECT_EQ(generator.normal(), normal);
}

TEST(Generator, DamagedStatesAreRejected) {
  Mt19937 generator(11);
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

// The known answers of Salmon et al.'s library (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox::block(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::block(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::block(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// torch.manual_seed(0); torch.rand(..., device="cuda"), as published: thread i draws its first
// word.
TEST(Philox, FirstNumbersOfPyTorchOnCuda) {
  const float expected[] = {0.3990f, 0.5167f, 0.0249f, 0.9401f, 0.9459f, 0.7967f, 0.4150f, 0.8203f};
  for (uint64_t thread = 0; thread < 8; thread++) {
    const auto bits = static_cast<float>(Philox::block(0, thread, 0)[0]);
    EXPECT_NEAR(bits * 0x1p-32f + 0x1p-33f, expected[thread], 1e-4f);
  }
}

TEST(Philox, StateIsSeedAndOffset) {
  Philox generator(Device(DeviceType::kCUDA, 0));
  generator.manual_seed(uint64_t{5} << 40);
  EXPECT_EQ(generator.take(6), 0u);
  EXPECT_EQ(generator.offset(), 8u);  // a block has four words
  const Tensor state = generator.get_state();
  EXPECT_EQ(state.numel(), 16);
  Philox other(Device(DeviceType::kCUDA, 1));
  other.set_state(state);
  EXPECT_EQ(other.initial_seed(), uint64_t{5} << 40);
  EXPECT_EQ(other.take(1), 8u);
  EXPECT_EQ(generator.clone()->offset(), 8u);
  EXPECT_THROW(generator.set_offset(3), Error);
  generator.manual_seed(1);
  EXPECT_EQ(generator.offset(), 0u);
}

TEST(Philox, HandsOutTwistersThatDiffer) {
  Philox generator(Device(DeviceType::kCUDA, 0), 3), same(Device(DeviceType::kCUDA, 0), 3);
  const uint32_t first = generator.twister().random(), second = generator.twister().random();
  EXPECT_NE(first, second);
  EXPECT_EQ(same.twister().random(), first);
  EXPECT_EQ(same.twister().random(), second);
}

TEST(Generator, OneOfAnotherDeviceIsRejected) {
  Mt19937 cpu;
  const Device cuda(DeviceType::kCUDA, 0);
  EXPECT_THROW(generator_or_default(&cpu, cuda), Error);
  EXPECT_EQ(&generator_or_default(&cpu, DeviceType::kCPU), &cpu);
  EXPECT_EQ(generator_or_default(nullptr, cuda).device(), cuda);
  EXPECT_EQ(&generator_or_default(nullptr, cuda), &default_generator(cuda));
}

}  // namespace
}  // namespace taeda
