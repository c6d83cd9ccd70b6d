// Launches over rows: one dimension of tensors of equal sizes (text/rows.cuh).
#pragma once

#include <string>

#include "kernels/cuda/text/row_args.h"
#include "kernels/optional.h"
#include "kernels/view.h"

namespace taeda::cuda {

// Threads that share a row of n elements, `along` bytes apart, whose neighbours begin `across`
// bytes from it: one where that reads neighbouring elements, else as many as have work.
uint32_t group_size(int64_t n, int64_t along, int64_t across);

// Parts that each of `count` results of n elements is made of, for a device to have enough threads:
// at most so many, and the same for the same sizes.
int64_t splits_of(int64_t count, int64_t n, uint32_t threads, int64_t most);

// Runs `kernel` on the rows along `dim` of `out` and of up to two others with its sizes, the first
// being read; `written` is the number of another operand that is written.
void launch_rows(const std::string& kernel, int64_t dim, const View& out, Span<const View> others,
                 size_t written = 0);

void cumsum(const View& out, const View& x, int64_t dim, OptDType);

}  // namespace taeda::cuda
