// torch.hash_tensor: the exclusive or of the elements' bits.
#include "op/_xor_bits.h"
#include "op/view.h"

namespace taeda::impl {
namespace {

void check(const Tensor& self, IntSpan dim, int64_t mode) {
  TD_CHECK(mode == 0, "Unknown hash_tensor mode: {}", mode);
  TD_CHECK(
      !dim.empty() || self.numel() > 0,
      "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the "
      "reduction dim with the 'dim' argument.");
  for (const int64_t d : dim) {
    TD_CHECK_INDEX(self.dim() == 0 || self.size(d) > 0,
                   "hash_tensor: Expected reduction dim {} to have non-zero size.", d);
  }
  TD_CHECK_IMPLEMENTED(!is_complex(self.dtype()) && !is_storage_type(self.dtype()),
                       "\"xor_sum_cpu\" not implemented for '{}'", scalar_type_name(self.dtype()));
}

}  // namespace

Tensor hash_tensor(const Tensor& self, IntSpan dim, bool keepdim, int64_t mode) {
  check(self, dim, mode);
  return op::view_dtype(op::_xor_bits(self, dim, keepdim), DType::kUInt64);
}

}  // namespace taeda::impl
