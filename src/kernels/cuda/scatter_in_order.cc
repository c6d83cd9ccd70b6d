// Scatters whose result must not depend on the order of threads, by sorted indices
// (text/index_runs.cuh).
#include "kernels/cuda/indexed.h"
#include "kernels/product.h"

namespace taeda::cuda {
namespace {

// Dimensions along which the index tensor repeats, as a vector of indices does for each line of a
// tensor, go in front of the others: indices are then sorted once for all of them.
struct FrontedViews {
  explicit FrontedViews(const Indexed& what, const View* number) {
    const View& index = what.index;
    for (const bool repeats : {true, false}) {
      for (int64_t d = 0; d < index.ndim(); d++) {
        const auto i = static_cast<size_t>(d);
        if (repeats != (d != what.dim && (index.strides[i] == 0 || index.sizes[i] == 1))) continue;
        if (d == what.dim) along = static_cast<int64_t>(positions.size());
        (repeats ? fronted : positions).push_back(index.sizes[i]);
        if (!repeats) index_strides.push_back(index.strides[i]);
        const bool has_self = what.self.ndim() > 0, has_values = !number && what.other.ndim() > 0;
        self_sizes.push_back(has_self ? what.self.sizes[i] : 1);
        self_strides.push_back(has_self ? what.self.strides[i] : 0);
        value_strides.push_back(has_values ? what.other.strides[i] : 0);
      }
    }
    value_sizes = fronted;
    for (const int64_t size : positions) value_sizes.push_back(size);
    self = what.self, values = number ? *number : what.other, indices = index;
    self.sizes = self_sizes, self.strides = self_strides;
    values.sizes = value_sizes, values.strides = value_strides;
    values.numel = index.numel;
    indices.sizes = positions, indices.strides = index_strides;
    indices.numel = kernels::product(positions);
  }
  FrontedViews(const FrontedViews&) = delete;
  FrontedViews& operator=(const FrontedViews&) = delete;

  View self, values, indices;
  DimVector fronted, positions, index_strides, self_sizes, self_strides, value_sizes, value_strides;
  int64_t along = 0;
};

}  // namespace

void write_in_order(const Indexed& what, Combine combine, const View* number) {
  const FrontedViews views(what, number);
  Indices indices{views.self,
                  {&views.indices, 1},
                  static_cast<int64_t>(views.fronted.size()),
                  views.indices.ndim()};
  indices.wrap = what.wrap;
  indices.message = what.message;
  indices.error = what.error;
  indices.dim = what.dim;
  indices.skipped = what.skipped;
  indices.is_scatter = true;
  indices.along = views.along;
  if (combine == Combine::kSet)
    index_write_in_order(indices, views.values);
  else
    index_accumulate(indices, views.values, combine);
}

}  // namespace taeda::cuda
