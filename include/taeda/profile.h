// Profiling: what operators ran, on what, when and where.
//
//   const Tensor x = ones({2, 3});
//   start_profile();
//   x.sum();
//   const Profile profile = stop_profile();
//   const ProfileRecord& first = profile.records[0];
//   assert(first.op->name() == "aten::sum" && first.end_ns >= first.start_ns);
//   assert(IntSpan(first.shapes[0]) == IntSpan({2, 3}));
//
// Recording is a mode of the calling thread (Key::kProfile) and goes along where work is handed to
// another one. Each thread writes into a ring of its own: nothing is shared while operators run,
// and a long run keeps its last records. An operator costs about a microsecond more while it is
// recorded and nothing otherwise. Operators that others are made of are recorded too, inside the
// time of those.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "taeda/operator.h"

namespace taeda {

struct ProfileOptions {
  bool shapes = true;         // the sizes of the tensor arguments
  bool frames = false;        // where the innermost Python frame stands: file, line and function
  size_t capacity = 1 << 16;  // records a thread keeps
};

// One call of one operator.
struct ProfileRecord {
  const Operator* op = nullptr;
  int64_t start_ns = 0, end_ns = 0;  // of a clock that only goes forward
  uint64_t thread = 0;               // the system's number
  std::vector<DimVector> shapes;     // of the tensor arguments, lists one after the other
  std::string frame;
};

struct Profile {
  std::vector<ProfileRecord> records;  // by start, so an operator stands before what it calls
  uint64_t dropped = 0;                // older records that had no room
};

// Starts recording on this thread; RuntimeError where it is being recorded already.
void start_profile(const ProfileOptions& options = {});
// Ends it and returns what was recorded; RuntimeError where nothing was started.
Profile stop_profile();
bool is_profiling();

// What gives the text of ProfileRecord::frame; set by the bindings.
void set_profile_frame(std::string (*frame)());

}  // namespace taeda
