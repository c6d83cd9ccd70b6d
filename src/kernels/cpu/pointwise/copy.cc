// copy() and fill(): the loop engine's plans with nothing to compute.
#include <cstring>

#include "core/element.h"
#include "kernels/cpu/index/gather.h"
#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/pointwise/interleave.h"
#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cpu/pointwise/loop_plan.h"
#include "kernels/cpu/simd/stream.h"

namespace taeda::cpu {

namespace {

struct Scratch {
  const char* tile = nullptr;  // the source of the tile in `raw`: `rows` runs of `count` elements
  int64_t count = 0;
  int64_t rows = 0;
  StreamFence fence;
  alignas(64) char raw[kBlockBytes];
  alignas(64) char converted[kBlockBytes];
};

// n elements between strided memories of one item size.
void copy_items(char* dst, int64_t dst_stride, const char* src, int64_t src_stride,
                int64_t itemsize, int64_t n) {
  if (dst_stride == itemsize) return gather_items(dst, src, itemsize, src_stride, n);
  if (src_stride == itemsize) return scatter_items(dst, src, itemsize, dst_stride, n);
  for (int64_t i = 0; i < n; i++) {
    std::memcpy(dst + i * dst_stride, src + i * src_stride, static_cast<size_t>(itemsize));
  }
}

// Runs shorter than this of one repeated element are written in a loop of their own.
constexpr int64_t kShortRun = 32;

// Whether dimension 0 repeats each element of the source a few times, side by side.
bool repeats_elements(const LoopPlan<2>& plan, int64_t itemsize) {
  return plan.ndim > 1 && plan.sizes[0] < kShortRun && plan.strides[0][1] == 0 &&
         plan.strides[0][0] == itemsize && plan.strides[1][0] == plan.sizes[0] * itemsize;
}
void copy_repeated(LoopPlan<2> plan, int64_t itemsize) {
  struct Buffer {
    StreamFence fence;
    alignas(64) char gathered[kBlockBytes];
  };
  const int64_t times = plan.sizes[0];
  const bool streamed = worth_streaming(plan.footprint(0, itemsize) + plan.footprint(1, itemsize));
  plan.drop_innermost();
  const int64_t step = plan.strides[0][1];
  for_each_run<Buffer>(plan, step == itemsize ? kLoopGrain / times : kBlockBytes / itemsize,
                       [&](Buffer& buffer, char* const* at, int64_t n, int64_t) {
                         const char* from = at[1];
                         if (step != itemsize) {
                           gather_items(buffer.gathered, from, itemsize, step, n);
                           from = buffer.gathered;
                         }
                         repeat_items(at[0], from, times, itemsize, n, streamed);
                         buffer.fence.pending = streamed;
                       });
}

}  // namespace

void copy(const View& dst, const View& src) {
  if (dst.numel == 0) return;
  const View* views[] = {&dst, &src};
  LoopPlan<2> plan;
  plan.build(views, 2);
  if (dst.dtype == src.dtype && repeats_elements(plan, item_size(dst.dtype)))
    return copy_repeated(plan, item_size(dst.dtype));
  const int64_t to = item_size(dst.dtype), from = item_size(src.dtype), widest = std::max(to, from);
  const int64_t dst_stride = plan.strides[0][0], src_stride = plan.strides[0][1];
  const bool tiled = plan.crosses(1) && plan.strides[1][1] == from;
  const Conversion convert =
      dst.dtype == src.dtype ? Conversion() : Conversion(dst.dtype, src.dtype);

  const int64_t bytes = plan.footprint(0, to) + plan.footprint(1, from);
  const bool streamed = dst_stride == to && dst.data != src.data &&
                        (tiled ? worth_streaming_chunks(bytes) : worth_streaming(bytes));

  if (!convert && !tiled && !streamed) {
    for_each_run<char>(plan, kLoopGrain, [&](char&, char* const* at, int64_t n, int64_t) {
      copy_items(at[0], dst_stride, at[1], src_stride, to, n);
    });
    return;
  }
  const bool dense = !convert && src_stride == from;
  for_each_run<Scratch>(
      plan,
      tiled                         ? kTileLength
      : dense                       ? kLoopGrain
      : streamed && src_stride >= 0 ? kStreamBytes / widest
                                    : kBlockBytes / widest,
      [&](Scratch& scratch, char* const* at, int64_t n, int64_t rows) {
        const char* source = at[1];
        if (tiled) {
          int64_t row = (at[1] - scratch.tile) / from;
          if (!scratch.tile || row < 0 || row >= scratch.rows || scratch.count != n) {
            scratch.tile = at[1];
            scratch.count = n;
            scratch.rows = std::min(rows, kCacheLine / widest);
            row = 0;
            gather_tile(scratch.raw, at[1], from, src_stride, n, scratch.rows);
          }
          source = scratch.raw + row * n * from;
        } else if (src_stride != from) {
          gather_items(scratch.raw, at[1], from, src_stride, n);
          source = scratch.raw;
        }
        if (convert && dst_stride == to && !streamed) return convert(at[0], source, n);
        if (convert) convert(scratch.converted, source, n);
        if (streamed) {
          stream(at[0], convert ? scratch.converted : source, n * to);
          scratch.fence.pending = true;
          return;
        }
        scatter_items(at[0], convert ? scratch.converted : source, to, dst_stride, n);
      });
}

void fill(const View& dst, const Scalar& value) {
  alignas(16) char element[16];
  write_element(dst.dtype, element, value);
  if (const int64_t size = item_size(dst.dtype); dst.numel <= kLoopGrain && is_dense(dst))
    return gather_items(dst.as<char>(), element, size, 0, dst.numel);  // nothing to plan
  DimVector zeros;
  zeros.resize(dst.sizes.size());
  copy(dst, View{element, dst.dtype, dst.sizes, zeros, dst.numel, true});
}

}  // namespace taeda::cpu
