// Launches that address a tensor by indices along one dimension (text/index.cuh).
#pragma once

#include <string_view>

#include "kernels/cuda/indexing.h"
#include "kernels/cuda/text/index_args.h"
#include "kernels/view.h"
#include "taeda/error.h"
#include "taeda/scalar.h"

namespace taeda::cuda {

// Elements are addressed along `dim` of `self`; `other` and `index` have the same sizes, but for
// strides of 0 that stand for missing ones.
struct Indexed {
  const View &self, &other, &index;
  int64_t dim;
  const char* message;
  ErrorKind error = ErrorKind::kIndex;
  bool wrap = false;
  int64_t skipped = -1;
  const View* table = nullptr;  // addressed along its first dimension, where each index is a line
};

// Of the reductions' names: sum, mean, add; prod, multiply; amin, amax.
Combine combine_named(std::string_view name);

// What kernels get, a thread for each element of a line.
device::IndexArgs index_arguments(const Indexed& what);

// other = self at the indices.
void read_indexed(const Indexed& what);
// self at the indices op= other, or op= an element on the host.
void write_indexed(const Indexed& what, Combine combine, const View* number = nullptr);

// The same by sorted indices: of several writes to an element the last one counts, and combinations
// are made in the order of the indices.
void write_in_order(const Indexed& what, Combine combine, const View* number = nullptr);

// A vector of indices along `dim` of a tensor of `sizes`, for each of its lines.
struct Expanded {
  Expanded(const View& vector, IntSpan sizes, int64_t dim) : sizes_(sizes) {
    for (size_t d = 0; d < sizes.size(); d++) strides_.push_back(0);
    if (!sizes_.empty()) {
      const auto at = static_cast<size_t>(dim);
      sizes_[at] = vector.numel;
      strides_[at] = vector.ndim() ? vector.strides[0] : 0;
    }
    int64_t numel = 1;
    for (const int64_t s : sizes_) numel *= s;
    view = {vector.data, vector.dtype, sizes_, strides_, numel, true, vector.device};
  }
  Expanded(const Expanded&) = delete;
  Expanded& operator=(const Expanded&) = delete;

  DimVector sizes_, strides_;
  View view;
};

}  // namespace taeda::cuda
