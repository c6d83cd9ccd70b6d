// RaceDetector: says when two pieces of work touch the same bytes, one of them writing, and nothing
// orders them, whether or not the schedule of this run makes it matter.
//
// Work is ordered by vector clocks (Mattern 1988; the memory of accesses is FastTrack's, Flanagan
// and Freund 2009): every stream, and the host, numbers its work; a clock says up to which number
// of each stream somebody has seen. Work that knows the other's number comes after it. For each
// range of bytes the last write and the reads since then are kept, the latest one a stream.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace taeda::sim {

// Numbers by stream; what is beyond the end is 0.
class Clock {
 public:
  uint64_t operator[](size_t stream) const { return stream < ticks_.size() ? ticks_[stream] : 0; }
  uint64_t advance(size_t stream);
  // Knows from now on what `other` knows.
  void join(const Clock& other);

 private:
  std::vector<uint64_t> ticks_;
};

struct Operation {
  std::string name;
  std::string where;  // "stream 3", "the host"
  size_t stream;
  uint64_t tick;
};
using OperationRef = std::shared_ptr<const Operation>;

class RaceDetector {
 public:
  // Notes that `operation`, which comes after all that `clock` knows, touches the bytes. Returns
  // the text of the race if there is one; nothing is noted then.
  std::string touch(uintptr_t begin, uintptr_t end, bool writes, const OperationRef& operation,
                    const Clock& clock);
  // The memory was given back, after all work on it had ended.
  void forget(uintptr_t begin, uintptr_t end);

 private:
  struct Cell {
    uintptr_t end;
    OperationRef write;
    std::vector<OperationRef> reads;
  };
  using Cells = std::map<uintptr_t, Cell>;

  // Makes `at` a border between cells; the first cell at or after it.
  Cells::iterator split(uintptr_t at);
  static const Operation* conflict(const Cell& cell, bool writes, const Operation& operation,
                                   const Clock& clock);

  Cells cells_;  // by their beginning, disjoint
};

}  // namespace taeda::sim
