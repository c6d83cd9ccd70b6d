// The arguments of im2col's and col2im's kernels (unfold.cuh), which launchers fill (../unfold.cc).
#pragma once
#include "kernels/cuda/text/pool_args.h"

namespace taeda::device {

// Planes of images [in_h, in_w], and their columns [kernel_h, kernel_w, out_h, out_w].
struct UnfoldArgs {
  Windows h, w;
  Planes each;  // of columns [planes, kernel_h * kernel_w, out_h, out_w], or of images
  Divisor kernel_w;
  char* result;
  const char* x;
  ElementType type;
  uint8_t itemsize;
};

}  // namespace taeda::device
