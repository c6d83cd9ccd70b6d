// Sorting of 64-bit keys on a device, row by row (text/sort.cuh).
#pragma once

#include <array>
#include <string_view>

#include "kernels/cuda/text/sort_args.h"
#include "kernels/cuda/workspace.h"
#include "kernels/view.h"

namespace taeda::cuda {

// The first elements along `dim` in their order, as many as `values` has.
void topk(const View& values, const View& indices, const View& x, int64_t, int64_t dim,
          bool largest, bool);

// [rows, n] keys, and the number in its row of the element that each is of.
class Sorter {
 public:
  Sorter(Device device, int64_t rows, int64_t n);

  // Keys of the elements of x along `dim`, in the order of their values. `values` and `indices`
  // are where a kernel puts elements later: they have x's dimensions, of which `dim` may be
  // shorter.
  void load(const View& x, const View& values, const View& indices, int64_t dim, bool descending);
  // Stable.
  void merge();
  // Runs a kernel on `args` and the Views of load().
  void run(std::string_view kernel, DType type, int64_t work, bool writes = false);

  int64_t* keys() const { return reinterpret_cast<int64_t*>(args.keys[0]); }
  int64_t* order() const { return args.order[0]; }
  std::array<Access, 4> accesses(bool writes) const;

  device::SortArgs args{};

 private:
  Device device_;
  std::array<Workspace, 4> scratch_;
  SmallVector<Access, 3> loaded_;  // x, values, indices
};

}  // namespace taeda::cuda
