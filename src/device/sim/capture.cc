#include "device/sim/capture.h"

#include <algorithm>
#include <utility>

namespace taeda::sim {
namespace {

bool overlap(const Access& a, const Access& b) {
  const auto begin = [](const Access& x) { return reinterpret_cast<uintptr_t>(x.begin); };
  const auto end = [&](const Access& x) { return begin(x) + static_cast<uintptr_t>(x.bytes); };
  return begin(a) < end(b) && begin(b) < end(a);
}

// The accesses of the later and the earlier one that race; null where none do.
std::pair<const Access*, const Access*> conflict(const Node& later, const Node& earlier) {
  for (const Access& a : later.accesses)
    for (const Access& b : earlier.accesses)
      if ((a.writes || b.writes) && overlap(a, b)) return {&a, &b};
  return {nullptr, nullptr};
}

}  // namespace

int64_t WorkGraph::device_ns() const {
  std::vector<int64_t> end;
  int64_t last = 0;
  for (const Node& node : nodes) {
    int64_t start = 0;
    for (const size_t i : node.after) start = std::max(start, end[i]);
    end.push_back(start + node.device_ns);
    last = std::max(last, end.back());
  }
  return last;
}

void WorkGraph::run(std::mt19937_64& random) const {
  std::vector<size_t> waits, ready;
  std::vector<std::vector<size_t>> next(nodes.size());
  for (size_t i = 0; i < nodes.size(); i++) {
    waits.push_back(nodes[i].after.size());
    for (const size_t earlier : nodes[i].after) next[earlier].push_back(i);
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const size_t i = ready.back();
    ready.pop_back();
    nodes[i].run();
    for (const size_t later : next[i])
      if (--waits[later] == 0) ready.push_back(later);
  }
}

std::vector<bool> Capture::before(const std::vector<size_t>& nodes) const {
  std::vector<bool> found(graph_.nodes.size());
  std::vector<size_t> open = nodes;
  while (!open.empty()) {
    const size_t i = open.back();
    open.pop_back();
    if (found[i]) continue;
    found[i] = true;
    const auto& after = graph_.nodes[i].after;
    open.insert(open.end(), after.begin(), after.end());
  }
  return found;
}

std::string Capture::add(size_t stream, Node node) {
  std::vector<size_t>& last = streams_[stream];
  node.after = last;
  const std::vector<bool> ordered = before(last);
  for (size_t i = 0; i < graph_.nodes.size(); i++) {
    if (ordered[i]) continue;
    const Node& earlier = graph_.nodes[i];
    const auto [a, b] = conflict(node, earlier);
    if (!a) continue;
    invalid_ = true;
    return "race: " + node.name + (a->writes ? " writes" : " reads") + " what " + earlier.name +
           (b->writes ? " writes" : " reads") + ", and no event orders them in the graph";
  }
  last = {graph_.nodes.size()};
  graph_.nodes.push_back(std::move(node));
  return {};
}

void Capture::wait(size_t stream, const std::vector<size_t>& nodes) {
  std::vector<size_t>& last = streams_[stream];
  last.insert(last.end(), nodes.begin(), nodes.end());
  std::sort(last.begin(), last.end());
  last.erase(std::unique(last.begin(), last.end()), last.end());
}

bool Capture::is_joined() const {
  const std::vector<bool> ordered = before(streams_.at(origin_));
  return std::find(ordered.begin(), ordered.end(), false) == ordered.end();
}

}  // namespace taeda::sim
