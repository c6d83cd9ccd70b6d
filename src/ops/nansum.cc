// torch.nansum: the sum of what is not NaN.
#include "op/nansum.h"
#include "core/device_memory.h"
#include "kernels/cpu/reduce/reduce.h"
#include "op/nan_to_num.h"
#include "op/sum.h"
#include "ops/allocate.h"
#include "ops/dispatch.h"
#include "ops/reduce_rules.h"
#include "ops/rules.h"

namespace taeda::impl {

Tensor nansum(const Tensor& self, OptInts dim, bool keepdim, OptDType dtype) {
  const DType type = rules::sum_dtype(self.dtype(), dtype);
  if (is_floating(self.dtype()) && !is_inexact(type))  // NaN is no number after the conversion
    return op::sum(op::nan_to_num(self, 0.0, {}, {}), dim, keepdim, type);
  const Tensor result =
      empty_tensor(rules::reduced(self.sizes(), dim, keepdim), type, self.device());
  if (has_memory(self.device()))
    kernels::nansum(view_of(result), view_of(self), dim, keepdim, dtype);
  return result;
}

}  // namespace taeda::impl
