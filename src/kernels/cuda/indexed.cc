#include "kernels/cuda/indexed.h"

#include <cstring>

#include "device/deterministic.h"
#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

// Guesses, measured on no card.
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

// Whether each thread has whole lines, so that results do not depend on the order of threads.
bool by_lines(const device::IndexArgs& args) {
  return args.n <= kShortLine || static_cast<int64_t>(args.lines.count) >= kEnoughLines;
}
// Whether several threads may write to an element: by additions that devices have, which are exact
// of integers, or one after the other in any order; a number is the same whoever writes it.
bool may_race(DType t, Combine combine, bool is_number) {
  if (combine == Combine::kSum && (t == DType::kInt64 || t == DType::kInt32)) return true;
  if (combine == Combine::kSet && is_number) return true;
  if (deterministic) return false;
  return combine == Combine::kSet ||
         (combine == Combine::kSum && is_inexact(t) && dtype_info(t).compute == t);
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
  const DType t = what.self.dtype;
  device::IndexArgs args = index_arguments(what);
  const bool lines = by_lines(args);
  if (!lines && !may_race(t, combine, number != nullptr))
    return write_in_order(what, combine, number);
  args.combine = combine;
  args.atomic = !lines;
  if (lines) args.chunk = args.n, args.along = false;
  if (number) {
    args.has_number = true;
    std::memcpy(args.number, number->data, static_cast<size_t>(item_size(number->dtype)));
  }
  if (combine == Combine::kSet)
    run(kernel_name("index_scatter", mover(t), "_any"), what, args, false);
  else
    run(kernel_name("index_combine", combine_type(t), "_any"), what, args, false);
}

}  // namespace taeda::cuda
