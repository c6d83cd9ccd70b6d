// Reading and writing slices of a tensor at computed positions: what index, index_put_ and their
// relatives stand on.
#pragma once

#include <vector>

#include "kernels/launch.h"
#include "taeda/error.h"

namespace taeda::cpu {

// Memory offsets of the positions that `indices` (equal sizes; int32 or int64) name in dimensions
// first, first + 1, ... of `self`. An index outside raises `error` with `message`, whose holes are
// the index, its dimension and the size; with `wrap` negative ones count from the end.
std::vector<int64_t> index_offsets(const View& self, int64_t first, Span<const View> indices,
                                   const char* message, bool wrap,
                                   ErrorKind error = ErrorKind::kIndex);

// out[b][p][a] = self[b + offsets[p] + a]: `count` dimensions from `first` on are replaced by
// positions. out is dense.
void read_offsets(const View& out, const View& self, int64_t first, int64_t count,
                  Span<const int64_t> offsets);
// The way back: self takes values[b][p][a], added if `add`, in the order of positions.
void write_offsets(const View& self, const View& values, int64_t first, int64_t count,
                   Span<const int64_t> offsets, bool add);

// The same for dimensions first, first + 1, ... indexed by `indices`, tensors of equal sizes:
// negative ones count from the end, IndexError for those outside before anything is written.
void index_read(const View& out, const View& self, int64_t first, Span<const View> indices);
void index_write(const View& self, const View& values, int64_t first, Span<const View> indices,
                 bool add);

// self[..., index, ...] = value along `dim`; value has one element.
void index_fill(const View& self, int64_t dim, const View& index, const View& value);

}  // namespace taeda::cpu

namespace taeda {
TD_KERNEL(index_fill);
TD_KERNEL(index_read);
TD_KERNEL(index_write);
}  // namespace taeda
