// The arguments of sequences (sequence.cuh), which launchers fill (../sequence.cc).
#pragma once
#include "kernels/cuda/text/array_args.h"
#include "kernels/sequences.h"

namespace taeda::device {

// at(i) for i from 0 to n - 1.
template <class F>
struct SequenceArgs {
  Array out;
  uint64_t n;
  F at;
};
using CountUpArgs = SequenceArgs<sequences::Count>;
using StepsArgs = SequenceArgs<sequences::Steps>;
using SpacedArgs = SequenceArgs<sequences::Spaced>;
using PowersArgs = SequenceArgs<sequences::Powers>;
using ComplexSpacedArgs = SequenceArgs<sequences::ComplexSpaced>;
using WindowArgs = SequenceArgs<sequences::Windowed>;
using TriangleArgs = SequenceArgs<sequences::Triangle>;

}  // namespace taeda::device
