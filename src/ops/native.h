// fallback::native: the handler of an operator on a device that has a kernel for it.
//
// This build may be without the kernels (device/has_kernels.h), and kernels compute with arithmetic
// types alone: then the operator is on fallback.
#pragma once

#include <algorithm>
#include <utility>

#include "device/has_kernels.h"
#include "ops/fallback.h"

namespace taeda::fallback {

// Whether an argument is of a type that devices' kernels do not know.
template <class T>
bool is_stored_only(const T&) {
  return false;
}
inline bool is_stored_only(const Tensor& t) { return t.defined() && is_storage_type(t.dtype()); }
inline bool is_stored_only(TensorSpan list) {
  return std::any_of(list.begin(), list.end(), [](const Tensor& t) { return is_stored_only(t); });
}

template <const OperatorRecord& record, auto on_device, class R, class... Args>
[[gnu::visibility("hidden")]] R native(KeySet keys, Args... args) {
  if (cuda::has_kernels() && !(is_stored_only(args) || ...)) [[likely]]
    return on_device(keys, std::forward<Args>(args)...);
  return handler<record, on_device, R, Args...>(keys, std::forward<Args>(args)...);
}

}  // namespace taeda::fallback
