#include "kernels/cuda/pointwise.h"

#include <algorithm>

#include "device/launch.h"
#include "device/put_off.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/launch_list.h"
#include "kernels/cuda/pointwise_operands.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

template <int N>
void run_dense(const PointwiseCall& call, int device, DType stored, const Operands<N>& operands) {
  PointwiseArgument<device::DenseArgs<N>> argument{.functor = Functor(call)};
  auto& loop = argument.loop;
  loop.numbers = operands.numbers;
  const std::string name = kernel_name(call.loop.name, stored);
  const int64_t width = device::pack_size(item_size(stored)), numel = operands.plan.numel;
  for (int64_t begin = 0; begin < numel; begin += device::kMaxElements) {
    const int64_t n = std::min(numel - begin, device::kMaxElements);
    SmallVector<Access, N + 1> accesses;
    uintptr_t bits = 0;
    for (int k = 0; k <= N; k++) {
      const bool number = operands.is_number(k);
      const int64_t itemsize = item_size(operands.types[k]), count = number ? 1 : n;
      void* const at = operands.plan.data[k] + (number ? 0 : begin * itemsize);
      if (k == 0) loop.out = at;
      if (k > 0) loop.in[k - 1] = at;
      if (!number) bits |= reinterpret_cast<uintptr_t>(at);
      if (!operands.is_given(k)) accesses.push_back({at, count * itemsize, k == 0});
    }
    loop.n = static_cast<uint32_t>(n), loop.aligned = bits % 16 == 0;
    launch(device, name, (n + width - 1) / width, &argument, accesses);
  }
}

template <int N>
void run_strided(const PointwiseCall& call, int device, const Operands<N>& operands,
                 const typename Operands<N>::Plan& part) {
  PointwiseArgument<device::StridedArgs<N>> argument{.functor = Functor(call)};
  auto& loop = argument.loop;
  loop.numbers = operands.numbers;
  loop.ndim = static_cast<uint8_t>(part.ndim), loop.n = static_cast<uint32_t>(part.numel);
  SmallVector<Access, N + 1> accesses;
  for (int k = 0; k <= N; k++) {
    loop.data[k] = part.data[k];
    loop.types[k] = element_type(operands.types[k]);
    for (int d = 0; d < part.ndim; d++)
      loop.strides[d][k] = static_cast<int32_t>(part.strides[d][k]);
    const Extent e = extent(part, k, item_size(operands.types[k]));
    if (!operands.is_given(k))
      accesses.push_back({part.data[k] + e.below, e.above - e.below, k == 0});
  }
  for (int d = 0; d < part.ndim; d++)
    loop.sizes[d] = device::divisor(static_cast<uint32_t>(part.sizes[d]));
  launch(device, kernel_name(call.loop.name, call.compute, "_any"), part.numel, &argument,
         accesses);
}

template <int N>
void run(const PointwiseCall& call, const View& out, Span<const View> in) {
  const Operands<N> operands(call, out, in);
  if constexpr (N <= device::kMaxListInputs) {
    if (in_list())
      if (const std::optional<ListRow> row = list_row(call, operands))
        return put_off(call, out.device.index, out.dtype, N, *row);
  }
  if (const std::optional<DType> stored = operands.dense_type(call))
    return run_dense(call, out.device.index, *stored, operands);
  for_each_part(operands.plan,
                [&](const auto& part) { run_strided(call, out.device.index, operands, part); });
}

}  // namespace

void pointwise(const PointwiseCall& call, const View& out, Span<const View> in) {
  static constexpr decltype(&pointwise) kRuns[] = {run<1>, run<2>, run<3>, run<4>};
  static_assert(std::size(kRuns) == device::kMaxInputs);
  TD_CHECK(in.size() <= std::size(kRuns), "{}: {} inputs, a kernel takes at most {}",
           call.loop.name, in.size(), device::kMaxInputs);
  kRuns[in.size() - 1](call, out, in);
}

}  // namespace taeda::cuda
