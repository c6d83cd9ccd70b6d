// flip, tril and triu: copies with elements moved or cleared. Results are row-major. As in PyTorch,
// flip of storage types moves whole rows.
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cpu/simd/stream.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 14;

// f(row, offset): for each row along the last dimension of x, its number and the offset of its
// first element. Rows may be streamed.
template <class F>
void over_rows(const View& x, const F& f) {
  const size_t n = x.sizes.size();
  const int64_t length = n ? x.sizes[n - 1] : 1;
  if (x.numel == 0) return;
  parallel_for(0, x.numel / length, std::max<int64_t>(1, kWork / length),
               [&](int64_t begin, int64_t end) {
                 StreamFence fence;
                 fence.pending = true;
                 for (int64_t row = begin; row < end; row++) {
                   int64_t offset = 0, rest = row;
                   for (size_t d = n ? n - 1 : 0; d-- > 0;) {
                     offset += rest % x.sizes[d] * x.strides[d];
                     rest /= x.sizes[d];
                   }
                   f(row, offset);
                 }
               });
}

}  // namespace

void flip(const View& out, const View& self, IntSpan dims) {
  if (self.numel == 0) return;
  DimVector strides(self.strides);
  int64_t start = 0;
  for (int64_t d : dims) {
    if (self.ndim() == 0) break;
    const size_t i = static_cast<size_t>(d);
    const bool within_rows = self.sizes[i] > 1 && self.strides[i] == 1;
    TD_CHECK_IMPLEMENTED(!within_rows || !is_storage_type(self.dtype),
                         "\"flip_cpu\" not implemented for '{}'", scalar_type_name(self.dtype));
    start += (self.sizes[i] - 1) * strides[i];
    strides[i] = -strides[i];
  }
  copy(out, View{at(self, start), self.dtype, self.sizes, strides, self.numel, true});
}

namespace {

void write_zeros(char* dst, int64_t n, bool streamed) {
  if (!streamed) {
    std::memset(dst, 0, static_cast<size_t>(n));
    return;
  }
  alignas(64) static constexpr char kZeros[kStreamBytes] = {};
  for (int64_t i = 0; i < n; i += kStreamBytes)
    stream(dst + i, kZeros, std::min(kStreamBytes, n - i));
}

// Keeps columns [first, last) of row i, given by keep(i, columns).
template <class Keep>
void triangle(const View& out, const View& self, const Keep& keep) {
  const size_t n = self.sizes.size();
  const int64_t rows = self.sizes[n - 2], columns = self.sizes[n - 1], item = item_size(self.dtype);
  const int64_t step = self.strides[n - 1];
  const bool streamed =
      worth_streaming_chunks(self.numel * item) && columns * item >= kStreamedChunk;
  over_rows(self, [&](int64_t row, int64_t offset) {
    char* const to = at(out, row * columns);
    const auto [first, last] = keep(row % rows, columns);
    const char* const from = at(self, offset + first * step);
    write_zeros(to, first * item, streamed);
    if (streamed && step == 1)
      stream(to + first * item, from, (last - first) * item);
    else
      convert_row(to + first * item, out.dtype, 1, from, self.dtype, step, last - first);
    write_zeros(to + last * item, (columns - last) * item, streamed);
  });
}
// row + diagonal + extra as a column number, without overflow.
int64_t column(int64_t row, int64_t diagonal, int64_t extra, int64_t columns) {
  const int64_t d = std::clamp<int64_t>(diagonal, -(int64_t{1} << 60), int64_t{1} << 60);
  return std::clamp<int64_t>(row + d + extra, 0, columns);
}

}  // namespace

void tril(const View& out, const View& self, int64_t diagonal) {
  triangle(out, self, [=](int64_t row, int64_t columns) {
    return std::pair<int64_t, int64_t>(0, column(row, diagonal, 1, columns));
  });
}
void triu(const View& out, const View& self, int64_t diagonal) {
  triangle(out, self, [=](int64_t row, int64_t columns) {
    return std::pair<int64_t, int64_t>(column(row, diagonal, 0, columns), columns);
  });
}

}  // namespace taeda::cpu
