#include "taeda/error.h"

#include <gtest/gtest.h>

#include <string>

namespace taeda {
namespace {

TEST(Error, KeepsWhatFollowsANullCharacter) {
  try {
    fail(ErrorKind::kValue, "{} is not a reduction", std::string("a\0b", 3));
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a\\0b is not a reduction");
  }
}

}  // namespace
}  // namespace taeda
