// The operands of one pointwise call as its launches see them; 0 is the result.
#pragma once

#include <cstring>
#include <optional>

#include "core/with_dtype.h"
#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/pointwise.h"
#include "taeda/scalar.h"

namespace taeda::cuda {

// The functor as the kernel has it: its fields in the compute type, or doubles.
struct Functor {
  alignas(16) unsigned char bytes[64] = {};

  Functor() = default;
  explicit Functor(const PointwiseCall& call) {
    const auto count = size_t{call.loop.fields};
    if (count > 0 && !call.loop.scalars) std::memcpy(bytes, call.fields, count * sizeof(double));
    if (!call.loop.scalars) return;
    const auto* const values = static_cast<const Scalar*>(call.fields);
    with_dtype<Join<Types<bool>, WideNumbers>>(call.compute, [&]<class T>(T) {
      for (size_t i = 0; i < count; i++) {
        const T value = values[i].to<T>();
        std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
      }
    });
  }
};

template <int N>
struct Operands {
  using Plan = cpu::LoopPlan<device::kMaxInputs + 1>;

  device::Numbers<N> numbers{};  // inputs that are one element
  DType types[N + 1];
  Plan plan;

  Operands(const PointwiseCall& call, const View& out, Span<const View> in) {
    const View* views[N + 1] = {&out};
    for (int i = 0; i < N; i++) views[i + 1] = &in[static_cast<size_t>(i)];
    for (int k = 0; k <= N; k++) types[k] = views[k]->dtype;
    for (int i = 0; i < N; i++) note_number(call.compute, i, *views[i + 1]);
    plan.build(views, N + 1);
  }

  // Whether operand k is a number that goes by value, or any number.
  bool is_given(int k) const { return k > 0 && numbers.given >> (k - 1) & 1; }
  bool is_number(int k) const { return k > 0 && (numbers.given | numbers.repeated) >> (k - 1) & 1; }

  // The type of the arrays, if all operands are arrays in one order and the kernel for it fits.
  std::optional<DType> dense_type(const PointwiseCall& call) const {
    DType stored = call.result == call.compute ? types[0] : call.compute;
    for (int k = N; k > 0; k--)
      if (!is_number(k)) stored = types[k];
    const DType written = call.result == call.compute ? stored : call.result;
    bool dense = dtype_info(stored).compute == call.compute;
    for (int k = 0; k <= N; k++) {
      if (is_given(k)) continue;
      dense &= types[k] == (k == 0 ? written : stored);
      dense &= is_number(k) || plan.is_linear(k, item_size(types[k]));
    }
    return dense ? std::optional(stored) : std::nullopt;
  }

 private:
  // An input that is one element: its value if it is the host's, else read by the kernel.
  void note_number(DType compute, int i, const View& view) {
    for (size_t d = 0; d < view.sizes.size(); d++)
      if (view.strides[d] != 0 && view.sizes[d] != 1) return;
    (view.device.is_cpu() ? numbers.given : numbers.repeated) |= 1u << i;
    if (!view.device.is_cpu()) return;
    unsigned char* const number = numbers.number[i];
    if (view.dtype == compute)
      std::memcpy(number, view.data, static_cast<size_t>(item_size(view.dtype)));
    else
      cpu::Conversion(compute, view.dtype)(number, view.data, 1);
  }
};

// What a kernel gets.
template <class Loop>
struct PointwiseArgument {
  Loop loop{};
  Functor functor;
};

}  // namespace taeda::cuda
