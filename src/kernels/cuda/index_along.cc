// index_select, index_add, index_copy and index_fill (text/index.cuh).
#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/index/indexing.h"
#include "kernels/cuda/indexed.h"

namespace taeda::cuda {

void index_select(const View& out, const View& self, int64_t dim, const View& index) {
  const Expanded indices(index, out.sizes, dim);
  read_indexed({self, out, indices.view, dim,
                "index_select(): index {} is out of bounds for dimension {} with size {}"});
}
void index_add(const View& self, int64_t dim, const View& index, const View& source) {
  cpu::check_writable(self);
  const Expanded indices(index, source.sizes, dim);
  write_indexed({self, source, indices.view, dim,
                 "index_add_(): index {} is out of bounds for dimension {} with size {}"},
                Combine::kSum);
}
void index_copy(const View& self, int64_t dim, const View& index, const View& source) {
  cpu::check_writable(self);
  const Expanded indices(index, source.sizes, dim);
  write_indexed({self, source, indices.view, dim,
                 "index_copy_(): index {} is out of bounds for dimension {} with size {}"},
                Combine::kSet);
}

void index_fill(const View& self, int64_t dim, const View& index, const View& value) {
  DimVector sizes(self.sizes);
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = index.numel;
  const DimVector strides(sizes.size(), 0);
  const Expanded indices(index, sizes, dim);
  const View repeated{value.data,         value.dtype, sizes,       strides,
                      indices.view.numel, true,        value.device};
  Indexed what{self, repeated, indices.view, dim,
               "index_fill_(): index {} is out of bounds for dimension {} with size {}"};
  what.wrap = true;
  write_indexed(what, Combine::kSet, value.device.is_cpu() ? &value : nullptr);
}

}  // namespace taeda::cuda
