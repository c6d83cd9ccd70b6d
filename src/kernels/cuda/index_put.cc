// index, index_put_, take and put_ (text/indexing.cuh, text/index_runs.cuh).
#include "device/deterministic.h"
#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/index/indexing.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/indexing.h"

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

// One index tensor for each dimension from `first` on.
Indices by_dims(const View& self, int64_t first, Span<const View> indices, const char* message) {
  const auto dims = static_cast<int64_t>(indices.size());
  return {self, indices, first, dims, false, false, true, message};
}
Indices flat(const View& self, const View& index, const char* message) {
  return {self, {&index, 1}, 0, self.ndim(), true, false, true, message};
}

// A View's elements in row-major order and other sizes.
struct Reshaped {
  Reshaped(const View& v, IntSpan sizes)
      : elements(v), strides(cpu::dense_strides(sizes)), view(elements) {
    view.sizes = sizes;
    view.strides = strides;
  }

  Dense elements;
  DimVector strides;
  View view;
};

}  // namespace

void index_read(const View& out, const View& self, int64_t first, Span<const View> indices) {
  constexpr const char* kMessage =
      "index(): index {} is out of bounds for dimension {} with size {}";
  index_move(by_dims(self, first, indices, kMessage), out, false);
}
void index_write(const View& self, const View& values, int64_t first, Span<const View> indices,
                 bool accumulate) {
  constexpr const char* kMessage =
      "index_put_(): index {} is out of bounds for dimension {} with size {}";
  write(by_dims(self, first, indices, kMessage), values, accumulate);
}

void take(const View& out, const View& self, const View& index) {
  constexpr const char* kMessage =
      "take(): out of range: tried to access index {} on a tensor of {} elements.";
  index_move(flat(self, index, kMessage), out, false);
}
void put(const View& self, const View& index, const View& source, bool accumulate) {
  constexpr const char* kMessage =
      "put_(): out of range: tried to access index {} on a tensor of {} elements.";
  cpu::check_writable(self);
  write(flat(self, index, kMessage), Reshaped(source, index.sizes).view, accumulate);
}

}  // namespace taeda::cuda
