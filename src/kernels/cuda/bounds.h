// Indices that a kernel looks at before others use them (text/index.cuh).
#pragma once

#include "kernels/optional.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cuda {

// What an index outside [0, size) raises where the host next waits. Messages have holes for the
// index, the dimension and the size, or the index and the size, and live as long as the process.
struct Bounds {
  int64_t size;
  const char* message;
  const char* below;  // for indices below 0
  ErrorKind error = ErrorKind::kIndex;
  OptInt dim = {};
  OptInt except = {};  // an index that is not looked at
};
void check_bounds(const View& index, const Bounds& bounds);

}  // namespace taeda::cuda
