// CUDA graphs: work of a stream that is captured once and launched often, and the pools whose
// memory it keeps.
//
// While a stream captures, memory that is allocated on it comes from the graph's pool, and nothing
// may wait for the device: what would raises before it is tried where we know, and else says what
// the driver says. Which pool a thread's other allocations come from is its own choice
// (use_pool).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/memory_stats.h"
#include "device/event_pool.h"
#include "device/graph_generators.h"
#include "device/stream.h"

namespace taeda::cuda {

// A name that no pool has: of a program's pools (0, n), else of a graph's (n, 0).
PoolName new_pool_name(bool by_program);

// The pool that allocations of the calling thread on a device come from, for this stream: of the
// graph that it captures, else what use_pool() said, else the default one.
PoolName current_pool(Stream stream);
// The calling thread's from now on, until end_use(); may be nested.
void begin_use_of_pool(int device, const PoolName& name);
void end_use_of_pool(int device, const PoolName& name);

// Whether the stream, or the thread's current one of the device, is being captured.
bool is_capturing(Stream stream);
bool is_capturing(int device);
// Whether any stream is, on any device: while it is false nothing has to be asked of the driver.
bool any_capturing() noexcept;
// RuntimeError if the stream is being captured: "`what` waits for the device, ...".
void forbid_while_capturing(Stream stream, const char* what);
// RuntimeError if work of the device is being captured, which the CPU would do instead: "`what` has
// no kernel ...".
void forbid_host_work_while_capturing(int device, std::string_view what);

// What the allocator does in the scope may be done though work is captured.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;

 private:
  bool active_;
  CaptureMode saved_ = CaptureMode::kRelaxed;
};

class CudaGraph {
 public:
  // `keep`: the graph stays beside what was made of it to launch.
  explicit CudaGraph(bool keep = false) : keep_(keep) {}
  CudaGraph(const CudaGraph&) = delete;
  ~CudaGraph();

  // On the thread's current stream of its current device, which must not be the default one.
  void capture_begin(std::optional<PoolName> pool, CaptureMode mode);
  void capture_end();
  // Before the capture: a generator whose numbers the work draws, besides the device's default one.
  void register_generator(Generator& generator) { generators_.add(generator); }
  void instantiate();
  // On the thread's current stream of the graph's device. Replays follow one another, whatever
  // their streams.
  void replay();
  void reset();
  PoolName pool() const;
  size_t node_count() const { return nodes_; }
  void debug_dump(const std::string& path);
  void keep_for_dump() { keep_ = true; }
  Graph graph() const;
  GraphExec exec() const;

 private:
  void forget_capture();
  void end_use();

  bool keep_;
  bool capturing_ = false, captured_ = false;
  int device_ = -1;
  Stream stream_;
  std::optional<PoolName> pool_;
  GraphGenerators generators_;
  std::optional<PooledEvent> replayed_;  // after the last replay, where it drew random numbers
  size_t nodes_ = 0;
  Graph graph_ = nullptr;
  GraphExec exec_ = nullptr;
};

}  // namespace taeda::cuda
