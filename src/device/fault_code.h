// What a kernel tells the host that it found wrong: a record in pinned memory, all 0 while all is
// well. Kernels include this, too.
#pragma once
#include <cstdint>

namespace taeda::device {

inline constexpr uint32_t kDivisionByZero = 1;
inline constexpr uint32_t kOutOfBounds = 2;
inline constexpr uint32_t kClaimed = 3;  // a thread is about to write the record

// How the host tells of an index that is out of bounds.
struct BoundsMessage {
  const char* text;  // the host's, with holes for the index, the dimension and its size
  int64_t dim;
  int32_t error;  // an ErrorKind
};

struct Fault {
  uint32_t code;
  BoundsMessage message;
  int64_t index, size;
};

}  // namespace taeda::device
