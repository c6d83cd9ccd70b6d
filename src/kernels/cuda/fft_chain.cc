#include "kernels/cuda/fft_chain.h"

#include <optional>

#include "device/launch.h"
#include "kernels/cuda/fft_geometry.h"
#include "kernels/cuda/fft_lengths.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/workspace.h"
#include "kernels/product.h"

namespace taeda::cuda {
namespace {

// Points of a pass over columns, of which a block has several. A guess, measured on no card.
constexpr int64_t kPart = 512;

// What is for the ends of a chain only.
void leave_out_hooks(device::FftArgs& args, bool first, bool last) {
  if (!first) {
    args.from = device::FftForm::kComplex;
    args.swap_in = args.chirp_in = false;
    args.in_count = args.length;
  }
  if (last) return;
  args.to = device::FftForm::kComplex;
  args.swap_out = args.swap_end = args.chirp_out = false;
  args.factors = nullptr;
  args.out_count = args.length;
  args.scale = 1;
}

}  // namespace

FftLines dense_lines(char* data, bool wide, IntSpan sizes, int64_t length) {
  FftLines lines{data, wide ? 16 : 8, DimVector(sizes), {}};
  int64_t stride = length * lines.stride;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) lines.strides[d] = stride;
  lines.touched = {data, stride, true};
  return lines;
}

void run_fft_chain(Device device, bool wide, IntSpan sizes, const device::FftArgs& hooks,
                   const FftLines& in, const FftLines& out, const Access& factors) {
  const uint32_t capacity = wide ? device::kFftPoints<double> : device::kFftPoints<float>;
  const auto length = static_cast<int64_t>(hooks.length);
  const FftFactors passes = passes_of(length, capacity, kPart);
  const int64_t bytes = kernels::product(sizes) * length * (wide ? 16 : 8);
  std::optional<Workspace> between[2];
  FftLines from = in;
  int64_t before = 1;
  for (size_t i = 0; i < passes.size(); i++) {
    const bool first = i == 0, last = i + 1 == passes.size();
    FftLines to = out;
    if (!last) {
      if (!between[i % 2]) between[i % 2].emplace(device, bytes);
      to = dense_lines(between[i % 2]->data(), wide, sizes, length);
    }
    device::FftArgs args = hooks;
    leave_out_hooks(args, first, last);
    args.before = device::divisor(static_cast<uint32_t>(before));
    args.columns = device::divisor(static_cast<uint32_t>(length / passes[i]));
    set_lines(args, sizes, from, to);
    set_points(args, passes[i], capacity);
    from.touched.writes = false;
    const Access touched[] = {to.touched, from.touched, last ? factors : Access{}};
    launch(device.index, kernel_name("fft", wide ? DType::kFloat64 : DType::kFloat32, "_any"),
           static_cast<int64_t>(args.tiles) * kThreadsPerBlock, &args, touched);
    before *= passes[i];
    from = to;
  }
}

}  // namespace taeda::cuda
