// torch.hash_tensor: the exclusive or of the elements' bits.
#include "op/_cast.h"
#include "op/bitwise_xor.h"
#include "op/cat.h"
#include "op/contiguous.h"
#include "op/permute.h"
#include "op/reshape.h"
#include "op/slice.h"
#include "op/view.h"

namespace taeda::impl {
namespace {

// The elements as 64-bit floats or integers, seen as integers.
Tensor bits(const Tensor& self) {
  const DType dtype = self.dtype();
  TD_CHECK_IMPLEMENTED(!is_complex(dtype) && !is_storage_type(dtype),
                       "\"xor_sum_cpu\" not implemented for '{}'", scalar_type_name(dtype));
  if (!is_floating(dtype)) return op::_cast(self, DType::kInt64, {});
  return op::view_dtype(op::_cast(self, DType::kFloat64, {}), DType::kInt64);
}

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
}

}  // namespace

// By halves, each with the other.
Tensor hash_tensor(const Tensor& self, IntSpan dim, bool keepdim, int64_t mode) {
  check(self, dim, mode);
  DimVector order, reduced, kept, sizes;
  for (int64_t d = 0; d < self.dim(); d++) {
    const bool is_reduced = dim.empty() || std::find(dim.begin(), dim.end(), d) != dim.end();
    (is_reduced ? reduced : order).push_back(d);
    if (!is_reduced) kept.push_back(self.size(d));
    if (!is_reduced || keepdim) sizes.push_back(is_reduced ? 1 : self.size(d));
  }
  int64_t count = 1;
  for (const int64_t d : reduced) {
    count *= self.size(d);
    order.push_back(d);
  }
  kept.push_back(count);
  Tensor rows = op::reshape(op::permute(bits(self), order), kept);
  const int64_t last = rows.dim() - 1;
  while (count > 1) {
    const int64_t half = count / 2;
    const Tensor ends = op::slice(rows, last, half, 2 * half, 1),
                 joined = op::bitwise_xor(op::slice(rows, last, 0, half, 1), ends);
    const TensorList odd = {joined, op::slice(rows, last, 2 * half, count, 1)};
    rows = count % 2 == 0 ? joined : op::cat(odd, last);
    count -= half;
  }
  const Tensor words = op::contiguous(op::reshape(rows, sizes), MemoryFormat::kContiguous);
  return op::view_dtype(words, DType::kUInt64);
}

}  // namespace taeda::impl
