// sort and topk by merging runs (text/sort.cuh).
#include "kernels/cuda/mover.h"
#include "kernels/cuda/sorter.h"

namespace taeda::cuda {
namespace {

// The first elements along `dim` in their order, as many as `values` has.
void sort_rows(const View& values, const View& indices, const View& x, int64_t dim,
               bool descending) {
  if (values.numel == 0) return;
  const int64_t n = x.ndim() ? x.sizes[static_cast<size_t>(dim)] : 1;
  Sorter sorter(x.device, x.numel / n, n);
  sorter.load(x, values, indices, dim, descending);
  sorter.merge();
  sorter.run("sort_store", mover(x.dtype), values.numel, true);
}

}  // namespace

void sort(const View& values, const View& indices, const View& x, int64_t dim, bool descending) {
  sort_rows(values, indices, x, dim, descending);
}
void topk(const View& values, const View& indices, const View& x, int64_t, int64_t dim,
          bool largest, bool) {
  sort_rows(values, indices, x, dim, largest);
}

}  // namespace taeda::cuda
