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
// and a long run keeps its last records. Without shapes, memory and frames an operator costs some
// 70 ns more while it is recorded; it costs nothing otherwise. Operators that others are made of
// are recorded too, inside the time of those.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "taeda/operator.h"

namespace taeda {

struct ProfileOptions {
  bool shapes = true;         // the sizes of the tensor arguments
  bool frames = false;        // where the innermost Python frame stands: file, line and function
  bool memory = false;        // storage_bytes() before and after
  size_t capacity = 1 << 16;  // records a thread keeps
};

// One call of one operator, or one named block.
struct ProfileRecord {
  const Operator* op = nullptr;               // null for a block
  std::string block;                          // its name
  int64_t start_ns = 0, end_ns = 0;           // of a clock that only goes forward
  uint64_t thread = 0;                        // the system's number
  std::vector<DimVector> shapes;              // of the tensor arguments, lists one after the other
  int64_t bytes_before = 0, bytes_after = 0;  // storage_bytes() of the thread
  std::string frame;
};

struct Profile {
  std::vector<ProfileRecord> records;  // by start, so an operator stands before what it calls
  uint64_t dropped = 0;                // older records that newer ones replaced
};

// Starts recording on this thread; RuntimeError where it is being recorded already.
void start_profile(const ProfileOptions& options = {});
// Ends it and returns what was recorded; RuntimeError where nothing was started.
Profile stop_profile();
bool is_profiling();

// A named block of a program, from the call to end_profile_block with the number that it returns,
// on one thread; nothing while the thread is not profiled.
uint64_t begin_profile_block(std::string_view name);
void end_profile_block(uint64_t number);

// Bytes of CPU storages that the calling thread has allocated less those that it has released, as
// they were asked for, while a profile with `memory` is on; the difference of two such numbers is
// negative where it released what others, or it before, had allocated.
int64_t storage_bytes();

// What gives the text of ProfileRecord::frame; set by the bindings.
void set_profile_frame(std::string (*frame)());

}  // namespace taeda
