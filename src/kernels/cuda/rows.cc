#include "kernels/cuda/rows.h"

#include <algorithm>
#include <cstdlib>

#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {

uint32_t group_size(int64_t n, int64_t along, int64_t across) {
  if (n < 16 || (across != 0 && std::abs(across) < std::abs(along))) return 1;
  return n < 1024 ? 32 : kThreadsPerBlock;  // a guess, measured on no card
}

int64_t splits_of(int64_t count, int64_t n, uint32_t threads, int64_t most) {
  // Guesses, measured on no card, as are 32 elements for each thread of a part.
  constexpr int64_t kEnoughThreads = 1 << 16;
  const int64_t wanted = kEnoughThreads / (count * threads), worth = n / (int64_t{threads} * 32);
  return std::clamp<int64_t>(std::min(wanted, worth), 1, most);
}

void launch_rows(const std::string& kernel, int64_t dim, const View& out, Span<const View> in,
                 size_t written) {
  if (out.numel == 0) return;
  const View* views[3] = {&out};
  View parts[2];
  DimVector strides_of_parts[2];
  for (size_t k = 0; k < in.size(); k++) {
    parts[k] = is_complex(out.dtype) ? in[k] : real_part(in[k], strides_of_parts[k]);
    views[k + 1] = &parts[k];
  }
  device::RowArgs args{};
  WalkPlan<3> rows;
  for (size_t d = 0; d < out.sizes.size(); d++) {
    int64_t strides[3] = {};
    for (size_t k = 0; k <= in.size(); k++)
      strides[k] = views[k]->strides[d] * item_size(views[k]->dtype);
    if (static_cast<int64_t>(d) != dim) rows.add(out.sizes[d], strides);
    if (static_cast<int64_t>(d) == dim) std::copy_n(strides, 3, args.strides);
  }
  SmallVector<Access, 3> accesses;
  for (size_t k = 0; k <= in.size(); k++) {
    args.data[k] = static_cast<char*>(views[k]->data);
    args.types[k] = element_type(views[k]->dtype);
    accesses.push_back(access(*views[k], k == 0 || k == written));
  }
  const int64_t n = out.ndim() ? out.sizes[static_cast<size_t>(dim)] : 1;
  rows.sort_by(in.empty() ? 0 : 1);
  args.n = static_cast<uint64_t>(n);
  args.threads = group_size(n, args.strides[1], rows.innermost(1));
  args.rows = rows.walk();
  launch(out.device.index, kernel, static_cast<int64_t>(args.rows.count) * args.threads, &args,
         accesses);
}

}  // namespace taeda::cuda
