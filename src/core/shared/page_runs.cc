#include "core/shared/page_runs.h"

#include <iterator>

namespace taeda::shared {

PageRuns::ByPage::iterator PageRuns::remove(ByPage::iterator run) {
  const Run& r = run->second;
  (r.warm ? warm_ : cold_).erase({r.pages, r.first});
  free_ -= r.pages;
  return runs_.erase(run);
}

PageRuns::Run PageRuns::take_run(BySize::iterator found) {
  const auto run = runs_.find(found->second);
  const Run taken = run->second;
  remove(run);
  return taken;
}

std::optional<PageRuns::Run> PageRuns::take(uint32_t pages) {
  for (BySize* sizes : {&warm_, &cold_}) {
    const auto found = sizes->lower_bound({pages, 0});
    if (found == sizes->end()) continue;
    Run run = take_run(found);
    if (run.pages > pages) give({run.first + pages, run.pages - pages, run.warm});
    run.pages = pages;
    return run;
  }
  return std::nullopt;
}

std::optional<PageRuns::Run> PageRuns::take_warm() {
  if (warm_.empty()) return std::nullopt;
  return take_run(std::prev(warm_.end()));
}

void PageRuns::give(Run run) {
  auto next = runs_.lower_bound(run.first);
  if (next != runs_.end() && next->first == run.first + run.pages &&
      next->second.warm == run.warm) {
    run.pages += next->second.pages;
    next = remove(next);
  }
  if (next != runs_.begin()) {
    const auto before = std::prev(next);
    const Run& b = before->second;
    if (b.first + b.pages == run.first && b.warm == run.warm) {
      run = {b.first, b.pages + run.pages, run.warm};
      remove(before);
    }
  }
  runs_.emplace(run.first, run);
  (run.warm ? warm_ : cold_).insert({run.pages, run.first});
  free_ += run.pages;
}

}  // namespace taeda::shared
