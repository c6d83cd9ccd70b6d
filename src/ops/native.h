// fallback::native: the handler of an operator on a device that has a kernel for it.
//
// This build may be without the kernels (device/has_kernels.h), and kernels compute with arithmetic
// types alone: then the operator is on fallback.
#pragma once

#include <utility>

#include "device/has_kernels.h"
#include "ops/fallback.h"

namespace taeda::fallback {

// What an argument has to do with types that devices' kernels do not know: it is of one, or two
// arguments promote to complex32.
inline constexpr unsigned kStoredOnly = 1, kHalf = 2, kComplexNumber = 4;

template <class T>
unsigned kinds(const T&) {
  return 0;
}
unsigned kinds(const Tensor& t);
unsigned kinds(TensorSpan list);
inline bool is_computed(unsigned found) {
  constexpr unsigned kComplex32 = kHalf | kComplexNumber;
  return !(found & kStoredOnly) && (found & kComplex32) != kComplex32;
}

template <const OperatorRecord& record, auto on_device, class R, class... Args>
[[gnu::visibility("hidden")]] R native(KeySet keys, Args... args) {
  if (cuda::has_kernels() && is_computed((kinds(args) | ... | 0u))) [[likely]]
    return on_device(keys, std::forward<Args>(args)...);
  return handler<record, on_device, R, Args...>(keys, std::forward<Args>(args)...);
}

}  // namespace taeda::fallback
