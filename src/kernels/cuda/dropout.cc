// dropout and its gradient (text/dropout.cuh).
#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

// How many elements of a view lie beside each other at addresses that are multiples of their size.
int64_t width_of(const View& v, int64_t most) {
  int64_t width = most;
  while (reinterpret_cast<uintptr_t>(v.data) % static_cast<uint64_t>(width * item_size(v.dtype)))
    width /= 2;
  return width;
}

void run(const char* name, device::DropoutArgs& args, int64_t work, const View& out,
         const View& mask, const View& x, bool draws) {
  args.out = static_cast<char*>(out.data);
  args.mask = static_cast<char*>(mask.data);
  args.in = static_cast<const char*>(x.data);
  args.n = static_cast<uint64_t>(x.numel);
  const Access touched[] = {access(out, true), access(mask, draws), access(x, false),
                            access(args.philox)};
  launch(x.device.index, kernel_name(name, x.dtype, "_any"), work, &args, touched);
}

}  // namespace

void dropout(const View& out, const View& mask, const View& x, double p, Generator& generator) {
  if (x.numel == 0) return;
  device::DropoutArgs args{};
  args.keep = 1 - p;
  // 16 bytes, fewer where the address or the number of elements are no multiple.
  int64_t width = width_of(x, 16 / item_size(x.dtype));
  while (x.numel % width != 0) width /= 2;
  args.width = static_cast<uint32_t>(std::min(width, width_of(out, width)));
  const Deal dealt = deal(x.device.index, x.numel, 4);
  args.threads = static_cast<uint64_t>(dealt.threads);
  args.philox = take(generator, out, dealt.draws * 4);
  run("dropout", args, dealt.threads, out, mask, x, true);
}

void dropout_backward(const View& gx, const View& gy, const View& mask, double scale) {
  if (gx.numel == 0) return;
  device::DropoutArgs args{};
  args.scale = scale;
  args.width =
      static_cast<uint32_t>(std::min({width_of(gx, 4), width_of(gy, 4), width_of(mask, 4)}));
  run("dropout_backward", args, (gx.numel + 3) / 4, gx, mask, gy, false);
}

}  // namespace taeda::cuda
