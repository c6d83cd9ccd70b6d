// multinomial (text/multinomial.cuh).
#include <algorithm>

#include "device/launch.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/sorter.h"
#include "kernels/cuda/walk.h"
#include "kernels/cuda/workspace.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

constexpr uint64_t kMostTurns = 65535;  // PyTorch's grid has a row for each, and this many at most
constexpr auto kRuntimeError = static_cast<int32_t>(ErrorKind::kRuntime);

View like(View v, const Workspace& memory) {
  v.data = memory.data();
  return v;
}

device::MultinomialArgs arguments(const View& out, const View& p) {
  device::MultinomialArgs args{};
  args.weights = static_cast<const char*>(p.data);
  args.out = out.as<int64_t>();
  args.rows = static_cast<uint64_t>(p.sizes[0]);
  args.n = static_cast<uint64_t>(p.sizes[1]);
  args.samples = static_cast<uint64_t>(out.sizes[1]);
  args.turns = std::min(args.rows, kMostTurns);
  args.in_row = (args.samples + 127) / 128 * 128;
  args.threads = group_size(p.sizes[1], 1, 0);
  args.not_finite = {"probability tensor contains either `inf`, `nan` or element < 0", 0,
                     kRuntimeError};
  args.no_mass = {"invalid multinomial distribution (sum of probabilities <= 0)", 0, kRuntimeError};
  args.type = element_type(p.dtype);
  args.itemsize = static_cast<uint32_t>(item_size(p.dtype));
  return args;
}

// `made` are keys or shares.
void look_at_rows(device::MultinomialArgs& args, const View& out, const View& p, const View& made) {
  const Access touched[] = {access(out, true), access(p, false), access(made, true)};
  const DType compute = dtype_info(p.dtype).compute;
  launch(p.device.index, kernel_name("multinomial_rows", compute, "_any"),
         p.sizes[0] * args.threads, &args, touched);
}

}  // namespace

void multinomial(const View& out, const View& p, bool replacement, Generator& generator) {
  if (out.numel == 0) return;
  device::MultinomialArgs args = arguments(out, p);
  const Workspace first(p.device, p.numel * item_size(p.dtype));
  const View made = like(p, first);
  if (!replacement || args.samples == 1) {
    random_exponential(made, 1, generator);
    args.keys = first.data();
    look_at_rows(args, out, p, made);
    if (args.samples == 1) return;
    const Workspace largest(p.device, out.numel * item_size(p.dtype));
    View values = like(out, largest);
    values.dtype = p.dtype;
    return topk(values, out, made, out.sizes[1], 1, true, true);
  }
  args.shares = first.data();
  look_at_rows(args, out, p, made);
  const Workspace second(p.device, p.numel * item_size(p.dtype));
  const View cumulative = like(p, second);
  cumsum(cumulative, made, 1, std::nullopt);
  args.cumulative = second.data();
  args.philox = take(generator, out, ((args.rows - 1) / args.turns + 1) * 4);
  const Access touched[] = {access(out, true), first.access(false), second.access(false),
                            access(args.philox)};
  launch(p.device.index, "multinomial_search_f64_any", out.numel, &args, touched);
}

}  // namespace taeda::cuda
