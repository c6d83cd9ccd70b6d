#include "kernels/cuda/indexed.h"

#include <cstring>

#include "device/deterministic.h"
#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

constexpr int64_t kEnoughLines = 4096;  // for a thread to have a whole one
constexpr int64_t kShortLine = 64;

DType combine_type(DType t) { return is_inexact(t) ? dtype_info(t).compute : DType::kInt64; }

void run(const std::string& kernel, const Indexed& what, device::IndexArgs& args, bool reads_self) {
  args.chunks = (args.n + args.chunk - 1) / args.chunk;
  const View& addressed = what.table ? *what.table : what.self;
  SmallVector<Access, 4> accesses{access(addressed, !reads_self), access(what.index, false)};
  if (!args.has_number) accesses.push_back(access(what.other, reads_self));
  launch(what.self.device.index, kernel, static_cast<int64_t>(args.lines.count * args.chunks),
         &args, accesses);
}

// Whether each thread has whole lines, so that results do not depend on their order.
bool by_lines(const device::IndexArgs& args, DType t) {
  const bool any_order = args.combine == Combine::kSum && t == DType::kInt64;
  return (deterministic && !any_order) || args.n <= kShortLine ||
         static_cast<int64_t>(args.lines.count) >= kEnoughLines;
}
bool has_atomic(DType t) {
  return t == DType::kInt64 || (is_inexact(t) && dtype_info(t).compute == t);
}

}  // namespace

Combine combine_named(std::string_view name) {
  if (name == "sum" || name == "mean" || name == "add") return Combine::kSum;
  if (name == "prod" || name == "multiply") return Combine::kProd;
  return name == "amin" ? Combine::kMin : Combine::kMax;
}

void read_indexed(const Indexed& what) {
  if (what.other.numel == 0) return;
  device::IndexArgs args = index_arguments(what);
  run(kernel_name("index_gather", mover(what.self.dtype), "_any"), what, args, true);
}

void write_indexed(const Indexed& what, Combine combine, const View* number) {
  if (what.index.numel == 0 || what.self.numel == 0) return;
  device::IndexArgs args = index_arguments(what);
  args.combine = combine;
  if (number) {
    args.has_number = true;
    std::memcpy(args.number, number->data, static_cast<size_t>(item_size(number->dtype)));
  }
  const DType t = what.self.dtype;
  const bool lines = by_lines(args, t);
  args.atomic = !lines && combine == Combine::kSum && has_atomic(t);
  if (lines || (combine != Combine::kSet && !args.atomic)) args.chunk = args.n, args.along = false;
  if (combine == Combine::kSet)
    run(kernel_name("index_scatter", mover(t), "_any"), what, args, false);
  else
    run(kernel_name("index_combine", combine_type(t), "_any"), what, args, false);
}

}  // namespace taeda::cuda
