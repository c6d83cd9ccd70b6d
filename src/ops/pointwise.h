// Launching pointwise operators: type promotion, broadcasting, allocation, and the call into the
// loop engine.
//
// Generated code calls run() with the operator's constant description; everything that is the same
// for all pointwise operators is here, once.
#pragma once

#include "kernels/cpu/pointwise/loop.h"
#include "ops/allocate.h"
#include "ops/contract.h"

namespace taeda::pointwise {

// How the result's dtype follows from the promoted dtype of the arguments (table key `promote`).
enum class Promote : uint8_t { kSame, kFloat, kBool, kReal, kMasked };

// What a result is laid out as that is made for inputs which are not row-major: in their order
// (ops/elementwise.h), or row-major, which of some operators only holds where the first input is a
// number, or complex.
enum class Layout : uint8_t { kAsInput, kRowMajor, kRowMajorOfNumber, kRowMajorOfComplex };

// Whether a tensor with elements that share memory may be written in place: not, or with a warning.
enum class SelfOverlap : uint8_t { kRefused, kWarned };

struct Info {
  std::string_view name;
  DTypeSet types;
  Promote promote;
  OutDtype out_dtype = OutDtype::kCastable;  // kSame or kNumber otherwise
  Layout layout = Layout::kAsInput;
  SelfOverlap self_overlap = SelfOverlap::kRefused;

  // complex32 is calculated in complex64, as float16 in float32.
  template <class... Others>
  consteval Info(std::string_view name, DTypeSet types, Promote promote, Others... others)
      : name(name),
        types(types & contract::kComplex ? types | dtype_bit(DType::kComplex32) : types),
        promote(promote) {
    (set(others), ...);
  }

 private:
  consteval void set(OutDtype allowed) { out_dtype = allowed; }
  consteval void set(Layout own) { layout = own; }
  consteval void set(SelfOverlap allowed) { self_overlap = allowed; }
};

// Applies the dense kernels of `table` to the broadcast inputs. `into` undefined: a fresh result.
// `into` the first input: in place (the shape must not grow). `into` another tensor: out=, resized.
// Undefined inputs are not allowed.
Tensor run(const Info& info, const DenseTable& table, const Tensor& into,
           Span<const Tensor* const> inputs, const void* functor);

}  // namespace taeda::pointwise
