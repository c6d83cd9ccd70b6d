// searchsorted and isin (text/search.cuh).
#include "kernels/cpu/sort/search.h"

#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/search_args.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

device::SearchArgs arguments(const View& out, const View& sorted, const View& values) {
  device::SearchArgs args{};
  args.sorted = static_cast<const char*>(sorted.data);
  args.values = static_cast<const char*>(values.data);
  args.out = static_cast<char*>(out.data);
  args.count = args.n = static_cast<uint64_t>(values.numel);
  args.m = static_cast<uint64_t>(sorted.numel);
  args.itemsize = item_size(values.dtype);
  args.type = element_type(values.dtype);
  return args;
}

void run(const View& out, const View& sorted, const View& values, device::SearchArgs& args) {
  if (values.numel == 0) return;
  const Access touched[] = {access(out, true), access(sorted, false), access(values, false)};
  const DType type = is_inexact(values.dtype) ? DType::kFloat64 : DType::kInt64;
  launch(out.device.index, kernel_name("search", type, "_any"), values.numel, &args, touched);
}

}  // namespace

void searchsorted(const View& out, const View& boundaries, const View& values, bool right) {
  device::SearchArgs args = arguments(out, boundaries, values);
  const int64_t m = boundaries.sizes[1];
  args.n = static_cast<uint64_t>(values.sizes[1]);
  args.m = static_cast<uint64_t>(m);
  args.row = boundaries.sizes[0] == 1 ? 0 : m * args.itemsize;
  args.right = right;
  run(out, boundaries, values, args);
}

void count_not_above(const View& out, const View& ascending) {
  device::SearchArgs args = arguments(out, ascending, out);
  args.values = nullptr;
  args.right = true;
  run(out, ascending, out, args);
}

void is_among(const View& out, const View& values, const View& sorted, bool invert) {
  device::SearchArgs args = arguments(out, sorted, values);
  args.found = true;
  args.invert = invert;
  run(out, sorted, values, args);
}

}  // namespace taeda::cuda
