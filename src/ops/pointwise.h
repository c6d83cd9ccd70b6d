// Launching pointwise operators: type promotion, broadcasting, allocation, and the call into the
// loop engine.
//
// Generated code calls run() with the operator's constant description; everything that is the same
// for all pointwise operators is here, once.
#pragma once

#include "kernels/cpu/pointwise/loop.h"
#include "ops/contract.h"

namespace taeda::pointwise {

// How the result's dtype follows from the promoted dtype of the arguments (table key `promote`).
enum class Promote : uint8_t { kSame, kFloat, kBool, kReal, kMasked };

// What a result is laid out as that is made for inputs which are not row-major: as the first of its
// size, or row-major, which of some operators only holds where the first input is a number.
enum class Layout : uint8_t { kAsInput, kRowMajor, kRowMajorOfNumber };

struct Info {
  std::string_view name;
  DTypeSet types;
  Promote promote;
  bool same_out;  // out= must have the result's dtype, not one that it can be cast to
  Layout layout;

  // complex32 is calculated in complex64, as float16 in float32.
  consteval Info(std::string_view name, DTypeSet types, Promote promote, bool same_out = false,
                 Layout layout = Layout::kAsInput)
      : name(name),
        types(types & contract::kComplex ? types | dtype_bit(DType::kComplex32) : types),
        promote(promote),
        same_out(same_out),
        layout(layout) {}
  consteval Info(std::string_view name, DTypeSet types, Promote promote, Layout layout)
      : Info(name, types, promote, false, layout) {}
};

// Applies the dense kernels of `table` to the broadcast inputs. `into` undefined: a fresh result.
// `into` the first input: in place (the shape must not grow). `into` another tensor: out=, resized.
// Undefined inputs are not allowed.
Tensor run(const Info& info, const DenseTable& table, const Tensor& into,
           Span<const Tensor* const> inputs, const void* functor);

}  // namespace taeda::pointwise
