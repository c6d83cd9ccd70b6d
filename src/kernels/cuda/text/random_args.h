// The arguments of random numbers' kernels (random.cuh), which launchers fill (../random.cc).
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

struct RandomArgs {
  Walk<1> walk;  // of what is filled
  char* out;
  uint64_t seed, offset;
  uint64_t threads;  // that the elements are dealt to; others do nothing
  double a, b;       // parameters
  uint64_t range;    // of integers; 0 stands for 2^64
  int64_t base;
  ElementType type;
};

}  // namespace taeda::device
