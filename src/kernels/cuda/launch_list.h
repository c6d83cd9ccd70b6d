// Several calls of one functor as one launch: what makes torch._foreach_add and the like of CUDA's
// tensors a kernel a list.
//
// Between begin_list() and end_list() (device/put_off.h) dense calls are put off, of the types that
// PyTorch has such kernels for, as long as they have the same functor, fields and type in memory.
// They run in the order of the calls, or as if they did. What they read and write must not be freed
// until then.
#pragma once

#include <cmath>

#include "kernels/cuda/pointwise_operands.h"
#include "kernels/cuda/text/pointwise_list_args.h"

namespace taeda::cuda {

// What a list has of one call: where its operands are, 0 being the result, or the numbers
// themselves; the rest is as in device::ListCall.
struct ListRow {
  int64_t n = 0;
  const void* operands[device::kMaxListInputs + 1] = {};
  uint8_t given = 0, repeated = 0, single = 0;
};

// Launches it later, with others or alone.
void put_off(const PointwiseCall& call, int device, DType stored, int inputs, const ListRow& row);

// A number by value in the bytes of a pointer: one of complex128 fits if it is real.
inline bool put_number(const void*& to, const unsigned char* number, DType compute) {
  double imaginary = 0;
  if (compute == DType::kComplex128)
    std::memcpy(&imaginary, number + sizeof(double), sizeof(imaginary));
  if (imaginary != 0 || std::signbit(imaginary)) return false;
  std::memcpy(&to, number, sizeof(to));
  return true;
}

// The call as a row of a list, if it may be one.
template <int N>
std::optional<ListRow> list_row(const PointwiseCall& call, const Operands<N>& operands) {
  const DType stored = operands.types[0];
  const int64_t itemsize = item_size(stored);
  const auto& plan = operands.plan;
  if (!(call.loop.listed & dtype_bit(stored)) || call.result != call.compute ||
      dtype_info(stored).compute != call.compute || plan.numel > device::kMaxElements)
    return std::nullopt;
  ListRow row{.n = plan.numel};
  for (int k = 0; k <= N; k++) {
    const auto bit = static_cast<uint8_t>(k > 0 ? 1 << (k - 1) : 0);
    row.operands[k] = plan.data[k];
    if (operands.is_given(k)) {
      row.given |= bit;
      if (!put_number(row.operands[k], operands.numbers.number[k - 1], call.compute))
        return std::nullopt;
    } else if (operands.types[k] == stored && plan.is_linear(k, itemsize)) {
      continue;
    } else if (operands.is_number(k) &&
               (operands.types[k] == stored || operands.types[k] == DType::kFloat32)) {
      row.repeated |= bit;
      if (operands.types[k] != stored) row.single |= bit;
    } else {
      return std::nullopt;
    }
  }
  return row;
}

}  // namespace taeda::cuda
