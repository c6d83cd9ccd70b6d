// index, index_put_, take and put_ (text/indexing.cuh, text/index_runs.cuh).
#include "device/deterministic.h"
#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/index/indexing.h"
#include "kernels/cuda/indexing.h"
#include "kernels/cuda/temporary.h"

namespace taeda::cuda {
namespace {

void write(const Indices& what, const View& values, bool accumulate) {
  if (accumulate)
    index_accumulate(what, values);
  else if (deterministic)
    index_write_in_order(what, values);
  else
    index_move(what, values, true);
}

Indices flat(const View& self, const View& index) {
  return {self, {&index, 1},
          0,    self.ndim(),
          true, false,
          true, "out of range: tried to access index {} on a tensor of {} elements."};
}

}  // namespace

void index_read(const View& out, const View& self, int64_t first, Span<const View> indices) {
  index_move({self, indices, first, static_cast<int64_t>(indices.size())}, out, false);
}
void index_write(const View& self, const View& values, int64_t first, Span<const View> indices,
                 bool accumulate) {
  write({self, indices, first, static_cast<int64_t>(indices.size())}, values, accumulate);
}

void take(const View& out, const View& self, const View& index) {
  index_move(flat(self, index), out, false);
}
void put(const View& self, const View& index, const View& source, bool accumulate) {
  cpu::check_writable(self);
  write(flat(self, index), Reshaped(source, index.sizes).view, accumulate);
}

}  // namespace taeda::cuda
