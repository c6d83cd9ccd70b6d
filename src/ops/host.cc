#include "ops/host.h"

#include <algorithm>

#include "core/device_memory.h"
#include "core/layout.h"
#include "kernels/copy.h"
#include "ops/batching/level.h"
#include "ops/contract.h"

namespace taeda {

OptScalar known_number(const Tensor& t) {
  return has_memory(t.device()) ? OptScalar(t.item_scalar()) : std::nullopt;
}

bool known_true(const Tensor& condition) {
  const HostElements<Bool> samples(batching::all_samples(condition));
  return std::any_of(samples.begin(), samples.end(), [](Bool b) { return static_cast<bool>(b); });
}

void check_has_elements(std::string_view op, const Tensor& t) {
  if (!has_memory(t.device())) contract::fail_sizes(op);
}

Tensor moved_to(const Tensor& t, Device device, bool non_blocking) {
  Tensor moved =
      empty_strided_tensor(t.sizes(), preserved_strides(t.sizes(), t.strides()), t.dtype(), device);
  kernels::copy(view_of(moved), view_of(t), non_blocking);
  return moved;
}

}  // namespace taeda
