// kernels::NAME: how operators launch a kernel, on the device of its first View.
//
//   TD_KERNEL(index_fill);
//
// in namespace taeda makes kernels::index_fill of cpu::index_fill, which is declared above it and
// has no overloads, and of cuda::index_fill, which src/kernels/cuda may define. On meta, whose
// tensors have shapes only, nothing is launched.
#pragma once

#include <string_view>
#include <utility>

#include "kernels/view.h"

// A weak function is null where no file defines it.
#define TD_KERNEL(NAME)                                                            \
  namespace cuda {                                                                 \
  [[gnu::weak, gnu::visibility("hidden")]] decltype(cpu::NAME) NAME;               \
  }                                                                                \
  namespace kernels {                                                              \
  inline constexpr Kernel<decltype(cpu::NAME)> NAME{#NAME, cpu::NAME, cuda::NAME}; \
  }

namespace taeda::kernels {

template <class... Rest>
Device device_of(const View& view, const Rest&...) {
  return view.device;
}
template <class... Rest>
Device device_of(Span<const View> views, const Rest&...) {
  return views.empty() ? Device() : views[0].device;
}

// NotImplementedError: the operator table keeps calls from devices without the kernel, so this is
// for hand-written callers that forgot to name it.
[[noreturn, gnu::cold]] void fail_absent(std::string_view kernel, Device device);

template <class Function>
struct Kernel;
template <class... Args>
struct Kernel<void(Args...)> {
  const char* name;
  void (*cpu)(Args...);
  void (*cuda)(Args...);

  void operator()(Args... args) const {
    const Device device = device_of(args...);
    switch (device.type) {
      case DeviceType::kCPU:
        return cpu(std::forward<Args>(args)...);
      case DeviceType::kMeta:
        return;
      case DeviceType::kCUDA:
        if (!cuda) fail_absent(name, device);
        return cuda(std::forward<Args>(args)...);
    }
  }
};

}  // namespace taeda::kernels
