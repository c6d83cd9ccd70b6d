#include "taeda/error.h"

#include <gtest/gtest.h>

#include <string>

#include "base/fix_line.h"

namespace taeda {
namespace {

TEST(Error, KeepsWhatFollowsANullCharacter) {
  try {
    fail(ErrorKind::kValue, "{} is not a reduction", std::string("a\0b", 3));
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a\\0b is not a reduction");
  }
}

TEST(Error, HasItsFixInTheLastLineThatSaysSo) {
  EXPECT_EQ(before_fix("no 'a\nFix: b'\nFix: c", " in d"), "no 'a\nFix: b' in d\nFix: c");
  EXPECT_EQ(before_fix("no a", " in d"), "no a in d");
}

}  // namespace
}  // namespace taeda
