// The arguments of padding with a tensor's own elements (pad.cuh), which launchers fill
// (../pad.cc).
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

enum class PadMode : uint8_t { kReflect, kReplicate, kCircular };

// A dimension: n elements become `padded`, of which the first stands `before` in front of them.
struct PadDim {
  int64_t n, padded, before;
  int64_t cropped, kept;  // circular: those that are repeated, and how many are in front of them
  int64_t stride;         // in bytes, of what is read
};

// The walk goes over what is written, which is dense: where its plane begins in what is read, and
// the indices of three dimensions.
struct PadArgs {
  Walk<4> walk;
  char* out;
  const char* x;
  PadDim dims[3];
  PadMode mode;
  ElementType type;
};

}  // namespace taeda::device
