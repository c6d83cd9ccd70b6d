// Bags of rows, for embedding_bag (text/bags.cuh).
#include <algorithm>

#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/runs.h"
#include "kernels/cuda/text/bags_args.h"

namespace taeda::cuda {
namespace {

constexpr const char* kMessage =
    "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {}";
constexpr const char* kStartsMessage =
    "embedding_bag: offsets must ascend from 0 to at most {}, but offsets[{}] is {}";

device::BagsArgs arguments(const View& out, const View& rows, const View& indices,
                           const View& starts, const View& scales) {
  constexpr auto kError = static_cast<int32_t>(ErrorKind::kRuntime);
  device::BagsArgs args{};
  args.out = static_cast<char*>(out.data);
  args.rows = static_cast<const char*>(rows.data);
  args.scales = static_cast<const char*>(scales.data);
  args.indices = indices.as<int64_t>();
  args.starts = starts.as<int64_t>();
  args.count = indices.numel, args.bags = starts.numel - 1;
  args.width = rows.sizes[1], args.weights = rows.sizes[0];
  args.itemsize = item_size(rows.dtype);
  args.message = {kMessage, 0, kError};
  args.starts_message = {kStartsMessage, 0, kError};
  args.type = element_type(rows.dtype);
  return args;
}

void run(std::string_view kernel, int64_t work, device::BagsArgs& args, const View& out,
         Span<const View> read) {
  if (work == 0) return;
  const DType type = dtype_info(out.dtype).compute;
  launch(out.device.index, kernel_name(kernel, type, "_any"), work, &args,
         accesses({&out, 1}, read));
}

}  // namespace

void bag_sum(const View& out, const View& weight, const View& indices, const View& starts,
             const View& scales) {
  device::BagsArgs args = arguments(out, weight, indices, starts, scales);
  const View read[] = {weight, indices, starts, scales};
  if (args.count <= device::kLongBag || out.numel == 0)
    return run("bag_sum", std::max<int64_t>(1, args.bags * std::max<int64_t>(1, args.width)), args,
               out, read);
  const int64_t pieces = (args.count + device::kBagPiece - 1) / device::kBagPiece;
  const DType compute = dtype_info(out.dtype).compute;
  const Dense partials(out.device, compute, {{2 * pieces * args.width}});
  args.partials = static_cast<char*>(partials.view().data);
  run("bag_sum", out.numel, args, out, read);
  run("bag_pieces", pieces * args.width, args, partials, read);
  const View joined[] = {partials, starts};
  run("bag_join", (pieces - 1) * args.width * 32, args, out, joined);
}

void bag_sum_backward(const View& gw, const View& gy, const View& indices, const View& starts,
                      const View& scales, int64_t) {
  if (gw.numel == 0) return;
  fill(gw, Scalar(int64_t{0}));
  if (indices.numel == 0) return;
  const int64_t width = gw.sizes[1], row_bytes = width * item_size(gw.dtype);
  const int64_t sizes[] = {gw.sizes[0]}, strides[] = {row_bytes};  // rows as elements of a byte
  const View rows{gw.data, DType::kUInt8, sizes, strides, gw.sizes[0], true, gw.device};
  const SortedRuns sorted(
      {rows, {&indices, 1}, 0, 1, false, false, false, kMessage, ErrorKind::kRuntime}, width,
      dtype_info(gw.dtype).compute, Combine::kSum);
  device::BagsArgs args = arguments(gw, gy, indices, starts, scales);
  args.runs = sorted.runs;
  const View read[] = {gy, starts, scales};
  sorted.combine("bag_sum_backward", &args, accesses({&gw, 1}, read));
  WalkPlan<2> columns;
  columns.add(width, {item_size(gw.dtype), 0});
  sorted.combine_partials(gw, columns.walk());
}

void bag_dots(const View& out, const View& x, const View& weight, const View& indices,
              const View& starts) {
  device::BagsArgs args = arguments(out, weight, indices, starts, {});
  args.other = static_cast<const char*>(x.data);
  const View read[] = {x, weight, indices, starts};
  run("bag_dots", indices.numel * 32, args, out, read);
}

}  // namespace taeda::cuda
