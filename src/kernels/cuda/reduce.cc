#include "kernels/cuda/reduce.h"

#include <algorithm>

#include "device/launch.h"
#include "device/put_off.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/reduce_list.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/text/reduce_args.h"
#include "kernels/cuda/walk.h"
#include "kernels/cuda/workspace.h"

namespace taeda::cuda {
namespace {

bool is_reduced(IntSpan dims, int64_t d) {
  return dims.empty() || std::find(dims.begin(), dims.end(), d) != dims.end();
}

// Stride of a result's dimension that stands for x's dimension d, in bytes. `kept` are those of x
// in front of it that stay.
int64_t stride_of(const View* out, const View& x, int64_t d, int64_t kept) {
  if (!out) return 0;
  const auto at = static_cast<size_t>(out->ndim() == x.ndim() ? d : kept);
  return out->strides[at] * item_size(out->dtype);
}

}  // namespace

void reduce(const Reduction& what, const View* values, const View* indices, const View& given,
            IntSpan dims) {
  DimVector real_strides;
  const View x = is_complex(what.compute) ? given : real_part(given, real_strides);
  const View* const outs[] = {values, indices};
  const View& first = values ? *values : *indices;
  if (first.numel == 0) return;
  if (in_list() && values && !indices && put_off_reduction(what, *values, given)) return;
  device::ReduceArgs args{};
  WalkPlan<3> kept;
  WalkPlan<1> reduced;
  const int64_t itemsize = item_size(x.dtype);
  for (int64_t d = 0, k = 0; d < x.ndim(); d++) {
    const auto i = static_cast<size_t>(d);
    const int64_t size = x.sizes[i], stride = x.strides[i] * itemsize;
    if (is_reduced(dims, d))
      reduced.add(size, {stride});
    else
      kept.add(size, {stride, stride_of(values, x, d, k), stride_of(indices, x, d, k)}), k++;
  }
  kept.sort_by(0);
  if (values || dims.size() > 0) reduced.sort_by(0);
  const auto count = static_cast<int64_t>(kept.walk().count);
  const auto n = static_cast<int64_t>(reduced.walk().count);
  const uint32_t threads = group_size(n, reduced.innermost(0), kept.innermost(0));
  const int64_t splits = splits_of(count, n, threads, 1024);  // a guess, measured on no card
  args.kept = kept.walk();
  args.reduced = reduced.walk();
  args.x = static_cast<const char*>(x.data);
  args.x_type = element_type(x.dtype);
  args.threads = threads;
  args.splits = static_cast<uint32_t>(splits);
  args.split = static_cast<uint64_t>((n + splits - 1) / splits);
  args.parameter = what.parameter;
  SmallVector<Access, 4> touched{access(x, false)};
  for (int k = 0; k < 2; k++) {
    if (!outs[k]) continue;
    args.out[k] = static_cast<char*>(outs[k]->data);
    args.out_types[k] = element_type(outs[k]->dtype);
    touched.push_back(access(*outs[k], true));
  }
  const std::string name = kernel_name(what.name, what.compute, "_any");
  if (splits == 1) return launch(x.device.index, "reduce_" + name, count * threads, &args, touched);
  const Workspace states(x.device, count * splits * 32);  // bytes of the largest state
  args.partial = states.data();
  touched.push_back(states.access(true));
  launch(x.device.index, "reduce_" + name, count * splits * threads, &args, touched);
  args.threads = splits < 32 ? 1 : 32;
  launch(x.device.index, "join_" + name, count * args.threads, &args, touched);
}

}  // namespace taeda::cuda
