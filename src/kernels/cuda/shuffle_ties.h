// The part of a random permutation that is not sorting (text/random.cuh).
#pragma once

#include "kernels/view.h"
#include "taeda/generator.h"

namespace taeda::cuda {

// Shuffles the elements of `order` within each run of equal keys, which ascend. Vectors of int64 in
// row-major order, not empty.
void shuffle_ties(const View& order, const View& keys, Generator& generator);

}  // namespace taeda::cuda
