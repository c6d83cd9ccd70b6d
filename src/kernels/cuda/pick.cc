// kthvalue, median, nanmedian and mode: rows are sorted (text/sort.cuh), and one element of each is
// taken (text/pick.cuh).
#include "device/launch.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/sorter.h"

namespace taeda::cuda {
namespace {

using device::Pick;

constexpr int64_t kLongRow = 64;  // a block looks for its mode; a guess, measured on no card

// A result with a dimension of size 1 where x has `dim`.
class WithDim {
 public:
  WithDim(const View& v, const View& x, int64_t dim)
      : sizes_(v.sizes), strides_(v.strides), view(v) {
    if (v.ndim() < x.ndim()) {
      sizes_.insert(static_cast<size_t>(dim), 1);
      strides_.insert(static_cast<size_t>(dim), 0);
    }
    view.sizes = sizes_;
    view.strides = strides_;
  }
  WithDim(const WithDim&) = delete;
  WithDim& operator=(const WithDim&) = delete;

 private:
  DimVector sizes_, strides_;

 public:
  View view;
};

void run(const View& values, const View& indices, const View& x, int64_t dim, Pick pick,
         int64_t rank = 0) {
  if (values.numel == 0) return;
  const int64_t n = x.ndim() ? x.sizes[static_cast<size_t>(dim)] : 1, rows = x.numel / n;
  const WithDim picked(values, x, dim), numbers(indices, x, dim);
  Sorter sorter(x.device, rows, n);
  sorter.load(x, picked.view, numbers.view, dim, false);
  sorter.merge();
  sorter.args.pick = pick;
  sorter.args.rank = static_cast<uint64_t>(rank);
  sorter.args.has_nan = is_inexact(x.dtype);
  sorter.args.threads = pick == Pick::kMode && n > kLongRow ? kThreadsPerBlock : 1;
  sorter.run("sort_pick", mover(x.dtype), rows * sorter.args.threads, true);
}

}  // namespace

void kthvalue(const View& values, const View& indices, const View& x, int64_t k, int64_t dim,
              bool) {
  run(values, indices, x, dim, Pick::kRank, k - 1);
}
// The lower of the two middle elements; the first NaN where there is one.
void median_dim(const View& values, const View& indices, const View& x, int64_t dim, bool) {
  run(values, indices, x, dim, Pick::kMedian);
}
void nanmedian_dim(const View& values, const View& indices, const View& x, int64_t dim, bool) {
  run(values, indices, x, dim, Pick::kNanMedian);
}
// The smallest of the most frequent values, and the index of its last occurrence.
void mode(const View& values, const View& indices, const View& x, int64_t dim, bool) {
  run(values, indices, x, dim, Pick::kMode);
}

}  // namespace taeda::cuda
