// What the generated kernels::NAME need: each goes on to the kernel of its first View's device.
#pragma once

#include <string_view>

#include "kernels/view.h"

namespace taeda::kernels {

inline Device device_of(const View& view) { return view.device; }
inline Device device_of(Span<const View> views) {
  return views.empty() ? Device() : views[0].device;
}

// NotImplementedError: the operator table keeps calls from devices without the kernel, so this is
// for hand-written callers that forgot to name it.
[[noreturn, gnu::cold]] void fail_absent(std::string_view kernel, Device device);

}  // namespace taeda::kernels
