#include "kernels/cuda/true_flags.h"

#include <algorithm>

#include "core/device_memory.h"
#include "device/graph.h"
#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

constexpr int64_t kMaxChunks = 4096;  // one block adds up their counts; a guess, measured nowhere

int64_t chunk_of(int64_t n) {
  const int64_t tiles = (n + device::kTile - 1) / device::kTile;
  return (tiles + kMaxChunks - 1) / kMaxChunks * device::kTile;
}

}  // namespace

TrueFlags::TrueFlags(const View& flags, const View& x)
    : flags_(flags),
      x_(x),
      chunk_(chunk_of(flags.numel)),
      chunks_((flags.numel + chunk_ - 1) / chunk_),
      starts_(flags.device, 8 * (chunks_ + 1)) {
  const int64_t flag_size = item_size(flags.dtype), itemsize = item_size(x.dtype);
  WalkPlan<2> plan;
  for (size_t d = 0; d < x.sizes.size(); d++)
    plan.add(x.sizes[d], {flags.strides[d] * flag_size, x.strides[d] * itemsize});
  args.walk = plan.walk();
  args.flags = static_cast<const char*>(flags.data);
  args.x = static_cast<char*>(x.data);
  args.starts = reinterpret_cast<int64_t*>(starts_.data());
  args.chunk = static_cast<uint64_t>(chunk_);
  args.chunks = static_cast<uint64_t>(chunks_);
  args.type = element_type(flags.dtype);
  const Access counted[] = {access(flags, false), starts_.access(true)};
  launch(flags.device.index, "compact_count_i64_any", chunks_ * kThreadsPerBlock, &args, counted);
  launch(flags.device.index, "compact_starts_i64_any", 1, &args, {counted + 1, 1});
}

int64_t TrueFlags::count() const {
  int64_t n = 0;
  forbid_while_capturing(Stream::current(flags_.device.index),
                         "an operator whose result's size depends on data");
  count_host_read(flags_.device);
  copy_memory(&n, DeviceType::kCPU, args.starts + chunks_, flags_.device, sizeof n);
  return n;
}

void TrueFlags::run(std::string_view kernel, DType type, const View& out, bool writes_x) {
  args.out = static_cast<char*>(out.data);
  const Access touched[] = {access(flags_, false), access(x_, writes_x), starts_.access(false),
                            access(out, !writes_x)};
  launch(flags_.device.index, kernel_name(kernel, type, "_any"), chunks_ * kThreadsPerBlock, &args,
         touched);
}

}  // namespace taeda::cuda
