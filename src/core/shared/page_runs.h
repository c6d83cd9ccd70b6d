// PageRuns: which pages of a segment are free. Runs of them are warm, when their memory exists and
// may still be in the caches, or cold. Adjacent runs of one kind are one. The segment's creator has
// it in memory of its own. Not safe for threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace taeda::shared {

class PageRuns {
 public:
  struct Run {
    uint32_t first, pages;
    bool warm;
  };

  // All of 0 .. pages - 1 are free and cold.
  explicit PageRuns(uint32_t pages) { give({0, pages, false}); }

  // The smallest warm run of at least so many pages, else the smallest cold one; what is too much
  // stays free.
  std::optional<Run> take(uint32_t pages);
  void give(Run run);
  // The longest warm run, taken.
  std::optional<Run> take_warm();
  uint32_t free_pages() const { return free_; }

 private:
  using BySize = std::set<std::pair<uint32_t, uint32_t>>;  // pages, first page
  using ByPage = std::map<uint32_t, Run>;

  ByPage::iterator remove(ByPage::iterator run);
  Run take_run(BySize::iterator found);

  ByPage runs_;
  BySize cold_, warm_;
  uint32_t free_ = 0;
};

}  // namespace taeda::shared
