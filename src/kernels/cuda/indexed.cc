#include "kernels/cuda/indexed.h"

#include <algorithm>
#include <cstring>

#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

constexpr int64_t kEnoughLines = 4096;  // for a thread to have a whole one
constexpr int64_t kShortLine = 64;

int64_t size_of(const View& v, int64_t d) { return v.ndim() ? v.sizes[static_cast<size_t>(d)] : 1; }
int64_t stride_of(const View& v, int64_t d) {
  return v.ndim() ? v.strides[static_cast<size_t>(d)] * item_size(v.dtype) : 0;
}

DType combine_type(DType t) { return is_inexact(t) ? dtype_info(t).compute : DType::kInt64; }

device::IndexArgs arguments(const Indexed& what) {
  const auto& [self, other, index, dim, message, error, wrap, skipped, table] = what;
  device::IndexArgs args{};
  WalkPlan<3> lines;
  for (int64_t d = 0; d < std::max<int64_t>(1, index.ndim()); d++)
    if (table || d != dim)
      lines.add(size_of(index, d), {stride_of(self, d), stride_of(other, d), stride_of(index, d)});
  lines.sort_by(1);
  args.self = static_cast<char*>(self.data);
  args.other = static_cast<char*>(other.data);
  args.index = static_cast<const char*>(index.data);
  args.n = table ? 1 : static_cast<uint64_t>(size_of(index, dim));
  args.other_stride = table ? 0 : stride_of(other, dim);
  args.index_stride = table ? 0 : stride_of(index, dim);
  args.size = size_of(table ? *table : self, dim);
  args.stride = stride_of(table ? *table : self, dim);
  args.along =
      std::abs(args.other_stride) < std::abs(lines.innermost(1)) || lines.innermost(1) == 0;
  args.lines = lines.walk();
  args.chunk = args.chunks = 1;
  args.message = {message, dim, static_cast<int32_t>(error)};
  args.index_type = element_type(index.dtype);
  args.type = element_type(self.dtype);
  args.wrap = wrap;
  args.skipped = skipped;
  return args;
}

void run(const std::string& kernel, const Indexed& what, device::IndexArgs& args, bool reads_self) {
  args.chunks = (args.n + args.chunk - 1) / args.chunk;
  const View& addressed = what.table ? *what.table : what.self;
  SmallVector<Access, 4> accesses{access(addressed, !reads_self), access(what.index, false)};
  if (!args.has_number) accesses.push_back(access(what.other, reads_self));
  launch(what.self.device.index, kernel, static_cast<int64_t>(args.lines.count * args.chunks),
         &args, accesses);
}

// Whether each thread has whole lines, so that results do not depend on their order.
bool by_lines(const device::IndexArgs& args) {
  return args.n <= kShortLine || static_cast<int64_t>(args.lines.count) >= kEnoughLines;
}
bool has_atomic(DType t) {
  return t == DType::kInt64 || (is_inexact(t) && dtype_info(t).compute == t);
}

}  // namespace

void read_indexed(const Indexed& what) {
  if (what.other.numel == 0) return;
  device::IndexArgs args = arguments(what);
  run(kernel_name("index_gather", mover(what.self.dtype), "_any"), what, args, true);
}

void write_indexed(const Indexed& what, Combine combine, const View* number) {
  if (what.index.numel == 0 || what.self.numel == 0) return;
  device::IndexArgs args = arguments(what);
  args.combine = combine;
  if (number) {
    args.has_number = true;
    std::memcpy(args.number, number->data, static_cast<size_t>(item_size(number->dtype)));
  }
  const DType t = what.self.dtype;
  const bool lines = by_lines(args);
  args.atomic = !lines && combine == Combine::kSum && has_atomic(t);
  if (lines || (combine != Combine::kSet && !args.atomic)) args.chunk = args.n, args.along = false;
  if (combine == Combine::kSet)
    run(kernel_name("index_scatter", mover(t), "_any"), what, args, false);
  else
    run(kernel_name("index_combine", combine_type(t), "_any"), what, args, false);
}

}  // namespace taeda::cuda
