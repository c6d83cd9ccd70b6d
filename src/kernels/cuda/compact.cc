// nonzero, masked_select and masked_scatter_ (text/compact.cuh).
#include <algorithm>
#include <optional>

#include "kernels/copy.h"
#include "kernels/cpu/index/index_common.h"
#include "kernels/cpu/sort/search.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/mover.h"
#include "kernels/cuda/true_flags.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

// Itself, or a copy where a kernel writes to its memory.
class Unshared {
 public:
  Unshared(const View& v, const View& written) : view(v) {
    if (!cpu::may_overlap(v, written)) return;
    view = copy_.emplace(v.device, v.dtype, v.sizes).view();
    kernels::copy(view, v);
  }
  View view;

 private:
  std::optional<Dense> copy_;
};

}  // namespace

void nonzero(const View& x, const cpu::MakeResult& make) {
  if (x.numel == 0) return static_cast<void>(make(0));
  TrueFlags flags(x, x);
  const View out = make(flags.count());
  if (out.numel == 0) return;
  std::copy(x.sizes.begin(), x.sizes.end(), flags.args.sizes);
  flags.args.ndim = static_cast<int32_t>(x.ndim());
  flags.args.stride = out.strides[0] * item_size(out.dtype);
  flags.args.dim_stride = out.strides[1] * item_size(out.dtype);
  flags.run("compact_nonzero", DType::kInt64, out);
}

void masked_select(const View& x, const View& mask, const cpu::MakeResult& make) {
  if (x.numel == 0) return static_cast<void>(make(0));
  TrueFlags flags(mask, x);
  const View out = make(flags.count());
  if (out.numel > 0) flags.run("compact_select", mover(x.dtype), out);
}

void masked_scatter(const View& self, const View& mask, const View& source) {
  cpu::check_writable(self);
  if (self.numel == 0) return;
  const Unshared mask_kept(mask, self), from(source, self);
  TrueFlags flags(mask_kept.view, self);
  WalkPlan<1> plan;
  for (size_t d = 0; d < source.sizes.size(); d++)
    plan.add(source.sizes[d], {from.view.strides[d] * item_size(source.dtype)});
  flags.args.source = plan.walk();
  flags.args.available = static_cast<uint64_t>(source.numel);
  flags.args.message = {"masked_scatter_: Number of elements of source < number of ones in mask", 0,
                        static_cast<int32_t>(ErrorKind::kRuntime)};
  flags.run("compact_scatter", mover(self.dtype), from.view, true);
}

}  // namespace taeda::cuda
