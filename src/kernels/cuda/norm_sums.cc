#include "device/launch.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/rows.h"

namespace taeda::cuda {

void norm_sums(SumsPlan& plan, device::NormSumsArgs& args, const View& x, Accesses touched) {
  const auto count = static_cast<int64_t>(plan.kept.walk().count);
  const auto n = static_cast<int64_t>(plan.reduced.walk().count);
  plan.reduced.sort_by(0);
  args.threads = group_size(n, plan.reduced.innermost(0), plan.kept.innermost(0));
  const int64_t splits = splits_of(count, n, args.threads, 256);
  args.kept = plan.kept.walk();
  args.reduced = plan.reduced.walk();
  args.splits = static_cast<uint32_t>(splits);
  args.split = static_cast<uint64_t>((n + splits - 1) / splits);
  const Workspace states(x.device, splits > 1 ? count * splits * 16 : 1);
  args.partial = splits > 1 ? states.data() : nullptr;
  touched.push_back(states.access(true));
  launch(x.device.index, norm_kernel_name("norm_sums", x), count * splits * args.threads, &args,
         touched);
  if (splits == 1) return;
  launch(x.device.index, norm_kernel_name("norm_sums_join", x), count, &args, touched);
}

}  // namespace taeda::cuda
