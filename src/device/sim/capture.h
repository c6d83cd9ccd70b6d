// Capture: work of streams that is noted instead of queued, until it can be run as a graph.
//
// A piece of work comes after the last one of its stream, and after those that the stream waited
// for by events: both are edges of the graph. Two pieces that no path orders and that touch the
// same bytes, one of them writing, are a race, found when the second one is captured.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device/api.h"

namespace taeda::sim {

using cuda::Access;

struct Node {
  std::string name;
  std::vector<Access> accesses;
  int64_t device_ns = 0;
  std::function<void()> run;
  std::vector<size_t> after;  // those that it waits for
};

// What a capture made; unchanged from then on.
struct WorkGraph {
  std::vector<Node> nodes;
  // How long it takes when whatever may run side by side does.
  int64_t device_ns() const;
  // Runs all nodes, in an order that the edges allow.
  void run(std::mt19937_64& random) const;
};

class Capture {
 public:
  Capture(uint64_t id, size_t origin, cuda::CaptureMode mode)
      : id_(id), origin_(origin), mode_(mode), streams_{{origin, {}}} {}

  uint64_t id() const { return id_; }
  size_t origin() const { return origin_; }
  cuda::CaptureMode mode() const { return mode_; }
  bool is_own_thread() const { return thread_ == std::this_thread::get_id(); }
  bool invalid() const { return invalid_; }
  void invalidate() { invalid_ = true; }
  bool has(size_t stream) const { return streams_.contains(stream); }

  // Returns the text of the race if there is one; the capture is invalid then.
  std::string add(size_t stream, Node node);
  // The last nodes of a stream: what an event that is recorded now stands for.
  const std::vector<size_t>& last(size_t stream) { return streams_[stream]; }
  // The stream, which takes part from now on, waits for nodes.
  void wait(size_t stream, const std::vector<size_t>& nodes);
  // Whether all work is before the origin's next.
  bool is_joined() const;
  WorkGraph take() { return std::move(graph_); }

 private:
  // For each node whether it is one of `nodes` or before one.
  std::vector<bool> before(const std::vector<size_t>& nodes) const;

  uint64_t id_;
  size_t origin_;
  cuda::CaptureMode mode_;
  std::thread::id thread_ = std::this_thread::get_id();
  bool invalid_ = false;
  std::map<size_t, std::vector<size_t>> streams_;
  WorkGraph graph_;
};

}  // namespace taeda::sim
