// embedding: rows of a table by indices (text/index.cuh).
#include "kernels/cuda/indexed.h"

namespace taeda::cuda {
namespace {

constexpr const char* kMessage =
    "embedding(): index out of range in self: index {} is out of bounds for dimension {} with size "
    "{}";

// Rows of `table`, one for each index: the sizes of `rows`, of which the last is the row's.
struct RowsOf {
  RowsOf(const View& table, const View& rows, const View& indices) : sizes(rows.sizes) {
    for (size_t d = 0; d + 1 < sizes.size(); d++) {
      table_strides.push_back(0);
      index_strides.push_back(indices.strides[d]);
    }
    table_strides.push_back(table.strides[1]);
    index_strides.push_back(0);
    self = {table.data, table.dtype, sizes, table_strides, rows.numel, true, table.device};
    index = {indices.data, indices.dtype, sizes, index_strides, rows.numel, true, indices.device};
  }
  RowsOf(const RowsOf&) = delete;
  RowsOf& operator=(const RowsOf&) = delete;

  IntSpan sizes;
  DimVector table_strides, index_strides;
  View self, index;
};

}  // namespace

void embedding(const View& out, const View& weight, const View& indices, int64_t, bool, bool) {
  const RowsOf rows(weight, out, indices);
  Indexed what{rows.self, out, rows.index, 0, kMessage};
  what.table = &weight;
  read_indexed(what);
}

}  // namespace taeda::cuda
