#include "core/shared/page_runs.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace taeda::shared {
namespace {

TEST(PageRuns, PrefersTheSmallestWarmRun) {
  PageRuns runs(100);
  const auto first = runs.take(10);
  const auto second = runs.take(20);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->first, 0u);
  EXPECT_EQ(second->first, 10u);
  EXPECT_FALSE(first->warm);
  runs.give({20, 10, true});
  const auto warm = runs.take(4);
  ASSERT_TRUE(warm);
  EXPECT_TRUE(warm->warm);
  EXPECT_EQ(warm->first, 20u);
  EXPECT_FALSE(runs.take(71)) << "70 cold and 6 warm pages are free";
  EXPECT_EQ(runs.free_pages(), 76u);
  EXPECT_TRUE(runs.take(70));
}

TEST(PageRuns, JoinsNeighboursOfOneKind) {
  PageRuns runs(30);
  for (int i = 0; i < 3; i++) ASSERT_TRUE(runs.take(10));
  runs.give({0, 10, false});
  runs.give({20, 10, false});
  runs.give({10, 10, false});
  EXPECT_TRUE(runs.take(30));
  EXPECT_FALSE(runs.take_warm());
}

// Against a list that knows of each page whether it is free.
TEST(PageRuns, NeverHandsOutAPageTwice) {
  constexpr uint32_t kPages = 512;
  PageRuns runs(kPages);
  std::vector<bool> used(kPages);
  std::vector<PageRuns::Run> taken;
  std::mt19937 random(1);
  uint32_t free = kPages;
  for (int step = 0; step < 20000; step++) {
    if (random() % 2) {
      const auto run = runs.take(1 + random() % 40);
      if (!run) continue;
      for (uint32_t page = run->first; page < run->first + run->pages; page++) {
        ASSERT_FALSE(used[page]);
        used[page] = true;
      }
      free -= run->pages;
      taken.push_back(*run);
    } else if (!taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      PageRuns::Run run = taken.back();
      taken.pop_back();
      for (uint32_t page = run.first; page < run.first + run.pages; page++) used[page] = false;
      free += run.pages;
      run.warm = random() % 2;
      runs.give(run);
    }
    ASSERT_EQ(runs.free_pages(), free);
  }
}

}  // namespace
}  // namespace taeda::shared
