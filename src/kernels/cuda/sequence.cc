#include "kernels/cuda/sequence.h"

#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/sequence_args.h"

namespace taeda::cuda {
namespace {

template <class F>
void fill(const View& out, std::string_view what, DType compute, const F& at, int64_t n) {
  if (n == 0) return;
  device::SequenceArgs<F> args{array(out), static_cast<uint64_t>(n), at};
  launch(out.device.index, "sequence_" + kernel_name(what, compute, "_any"), n, &args,
         accesses({&out, 1}, {}));
}

}  // namespace

void fill_sequence(const View& out, const sequences::Count& at) {
  fill(out, "count", DType::kInt64, at, out.numel);
}
void fill_sequence(const View& out, const sequences::Steps& at) {
  fill(out, "steps", DType::kFloat64, at, out.numel);
}
void fill_sequence(const View& out, const sequences::Spaced& at) {
  fill(out, "spaced", DType::kFloat64, at, out.numel);
}
void fill_sequence(const View& out, const sequences::Powers& at) {
  fill(out, "powers", DType::kFloat64, at, out.numel);
}
void fill_sequence(const View& out, const sequences::ComplexSpaced& at) {
  fill(out, "spaced", DType::kComplex128, at, out.numel);
}
void fill_sequence(const View& out, const sequences::Windowed& at) {
  fill(out, "window", DType::kFloat64, at, out.numel);
}
void fill_triangle(const View& out, const sequences::Triangle& triangle) {
  fill(out, "triangle", DType::kInt64, triangle, out.numel / 2);
}

}  // namespace taeda::cuda
