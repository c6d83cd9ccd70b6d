#include "kernels/sequences.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace taeda::sequences {
namespace {

using Indices = std::vector<std::pair<int64_t, int64_t>>;

Indices by_rows(const Triangle& t, int64_t count) {
  Indices found;
  for (int64_t i = 0; i < count; i++) {
    const int64_t row = t.row_of(i);
    found.emplace_back(row, t.first_column(row) + i - t.before(row));
  }
  return found;
}

TEST(Triangle, HasTheElementsOnOneSideOfADiagonal) {
  for (int64_t rows = 0; rows < 6; rows++)
    for (int64_t cols = 0; cols < 6; cols++)
      for (int64_t offset = -rows; offset <= cols; offset++)
        for (const bool is_upper : {false, true}) {
          Indices expected;
          for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
              if (is_upper ? j - i >= offset : j - i <= offset) expected.emplace_back(i, j);
          const Triangle triangle{rows, cols, offset, is_upper};
          EXPECT_EQ(by_rows(triangle, static_cast<int64_t>(expected.size())), expected);
        }
}

TEST(Triangle, FindsRowsOfLargeMatrices) {
  const int64_t n = int64_t{1} << 31;
  for (const bool is_upper : {false, true}) {
    const Triangle triangle{n, n - 5, 3, is_upper};
    for (const int64_t row : {int64_t{0}, int64_t{1}, n / 2, n - 100}) {
      EXPECT_EQ(triangle.row_of(triangle.before(row)), row);
      EXPECT_EQ(triangle.row_of(triangle.before(row + 1) - 1), row);
    }
  }
}

TEST(Spaced, EndsExactlyAtTheLastNumber) {
  for (const bool is_fused : {false, true}) {
    const Spaced at = spaced<double>(0.1, 0.7, 11, is_fused);
    EXPECT_EQ(at(0), 0.1);
    EXPECT_EQ(at(10), 0.7);
  }
}

}  // namespace
}  // namespace taeda::sequences
