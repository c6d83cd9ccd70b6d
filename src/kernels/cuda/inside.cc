// flip, tril and triu (text/inside.cuh).
#include "kernels/cuda/inside.h"

#include <algorithm>
#include <cstring>

#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/number.h"

namespace taeda::cuda {

Inside::Inside(const View& out, const View& x, const Scalar& fill) : out_(out), x_(x) {
  std::fill_n(args_.high, device::kBounds, 1);
  const Number number(x.dtype, fill);
  std::memcpy(args_.fill, number.bytes, static_cast<size_t>(item_size(x.dtype)));
}
void Inside::add(int counter, int64_t step) {
  const int64_t bytes = item_size(x_.dtype);
  int64_t strides[2 + device::kBounds] = {out_.strides[dim_] * bytes, x_.strides[dim_] * bytes};
  strides[2 + counter] = step;
  plan_.add(out_.sizes[dim_++], strides);
}
void Inside::run(int64_t shift) {
  args_.walk = plan_.walk();
  args_.out = static_cast<char*>(out_.data);
  args_.x = static_cast<const char*>(x_.data);
  args_.shift = shift * item_size(x_.dtype);
  const Access touched[] = {access(out_, true), access(x_, false)};
  launch(out_.device.index, kernel_name("inside", mover(x_.dtype), "_any"), out_.numel, &args_,
         touched);
}

namespace {

// The diagonals in [low, high), which count from the main one to the right.
void diagonals(const View& out, const View& x, int64_t low, int64_t high) {
  if (out.numel == 0) return;
  Inside inside(out, x, Scalar(int64_t{0}));
  inside.bound(0, low, high);
  for (int64_t d = 2; d < x.ndim(); d++) inside.add();
  inside.add(0, -1);
  inside.add(0, 1);
  inside.run();
}

}  // namespace

void tril(const View& out, const View& x, int64_t diagonal) {
  diagonals(out, x, INT64_MIN, std::min(diagonal, INT64_MAX - 1) + 1);
}
void triu(const View& out, const View& x, int64_t diagonal) {
  diagonals(out, x, diagonal, INT64_MAX);
}

// A copy of what goes through memory the other way.
void flip(const View& out, const View& x, IntSpan dims) {
  if (out.numel == 0) return;
  copy(out, Reversed(x, dims));
}

}  // namespace taeda::cuda
