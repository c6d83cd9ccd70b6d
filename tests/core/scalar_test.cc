#include "taeda/scalar.h"

#include <gtest/gtest.h>

namespace taeda {
namespace {

TEST(Scalar, IsAFloatOfHalfPrecision) {
  for (const Scalar& half : {Scalar(Half(2.5f)), Scalar(BFloat16(2.5f))}) {
    EXPECT_TRUE(half.is_float());
    EXPECT_EQ(half.to_double(), 2.5);
  }
}

TEST(Scalar, IsABoolOfBools) {
  EXPECT_TRUE(Scalar(Bool(true)).is_bool() && Scalar(Bool(true)).to_bool());
  EXPECT_TRUE(Scalar(false).is_bool() && !Scalar(false).to_bool());
}

TEST(Scalar, IsNotMadeOfPointers) {
  EXPECT_FALSE((std::is_constructible_v<Scalar, const char*>));
  EXPECT_FALSE((std::is_constructible_v<Scalar, void (*)()>));
  EXPECT_FALSE((std::is_constructible_v<Scalar, std::nullptr_t>));
}

}  // namespace
}  // namespace taeda
